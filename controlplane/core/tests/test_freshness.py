"""Freshness of figures, and the tag that renders a figure with its time."""

from datetime import UTC, datetime, timedelta

import pytest

from controlplane.core.freshness import CURRENT, NEVER, STALE, assess_freshness
from controlplane.core.templatetags.screen import figure_at

NOW = datetime(2026, 11, 24, 19, 46, tzinfo=UTC)
MINUTE, SECOND = timedelta(minutes=1), timedelta(seconds=1)


@pytest.mark.parametrize(
    ("at", "state"),
    [
        pytest.param(None, NEVER, id="never true"),
        pytest.param(NOW, CURRENT, id="this moment"),
        pytest.param(NOW - 2 * MINUTE, CURRENT, id="as old as the cadence"),
        pytest.param(NOW - 2 * MINUTE - SECOND, STALE, id="older than the cadence"),
        pytest.param(NOW - 52 * MINUTE, STALE, id="an old count"),
        pytest.param(NOW + MINUTE, CURRENT, id="another process's clock is ahead"),
        pytest.param(NOW + 2 * MINUTE + SECOND, STALE, id="the clock was set back"),
    ],
)
def test_figure_is_current_within_its_cadence(at, state):
    assert assess_freshness(at, 2 * MINUTE, NOW).state == state


@pytest.mark.parametrize(
    ("age", "text", "shown", "hidden"),
    [
        pytest.param(MINUTE, "25 %", ["25 %", "As of"], ["--stale", "no update"], id="current"),
        pytest.param(52 * MINUTE, "25 %", ["25 %", "--stale", "no update since"], [], id="stale"),
        pytest.param(MINUTE, "", ["as of"], ["--stale"], id="only the time"),
        pytest.param(None, "", ["never reported"], ["as of"], id="never"),
        pytest.param(MINUTE, "<b>", ["&lt;b&gt;"], ["<b>"], id="escaped"),
    ],
)
def test_figure_is_rendered_with_its_time(age, text, shown, hidden):
    at = None if age is None else NOW - age

    html = figure_at(assess_freshness(at, 2 * MINUTE, NOW), text)

    assert [words for words in shown if words not in html] == []
    assert [words for words in hidden if words in html] == []


def test_words_before_a_stale_time_may_be_chosen():
    stale = assess_freshness(NOW - 52 * MINUTE, 2 * MINUTE, NOW)

    assert "no calls since <time" in figure_at(stale, "25 %", "no calls since")
