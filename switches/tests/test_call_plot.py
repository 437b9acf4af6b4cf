"""Layout of call plots: stacked columns, gaps, and markers that don't overlap."""

import pytest

from controlplane.core.instances.check_series import CheckSeries, build_series
from switches import call_plot
from switches.call_plot import Marker, draw_plot, group_markers, round_up
from switches.templatetags.calls import blocked_share, call_spark, calls_words, range_words


def series(*counts: tuple[int, int] | None) -> CheckSeries:
    """Return a series of a minute for each (allowed, blocked), with a gap for None."""
    sums = {60 * n: pair for n, pair in enumerate(counts) if pair is not None}
    return build_series(sums, 0, 60 * len(counts), 60)


def test_blocked_calls_are_drawn_below_allowed_ones_and_gaps_along_the_ground():
    plot = draw_plot("1h", series((60, 40), None, (0, 50)), [])

    assert (plot.top, plot.width) == (100, "3")
    assert plot.blocked == "M0 100v-40h1v40zM2 100v-50h1v50z"
    assert plot.allowed == "M0 60v-60h1v60z"
    assert plot.gaps == "M1 100h1"


@pytest.mark.parametrize(
    ("rate", "top"), [(0, 1), (0.3, 0.5), (1, 1), (1.1, 2), (49, 50), (51, 100), (730, 1000)]
)
def test_axis_ends_with_the_next_round_number(rate, top):
    assert round_up(rate) == pytest.approx(top)


def test_neighboring_marks_share_a_marker_and_keep_their_numbers():
    markers = group_markers(
        [10, 12, 16.9, 17, 60], ["engaged", "ramping", "ramping", "released", "engaged"]
    )

    assert markers == [
        Marker("10%", "1–3", "ramping"),
        Marker("17%", "4", "released"),
        Marker("60%", "5", "engaged"),
    ]


@pytest.mark.parametrize(
    ("allowed", "blocked", "share"),
    [(0, 0, "no calls"), (3, 1, "25 %"), (999, 1, "< 1 %"), (1, 999, "> 99 %"), (0, 7, "100 %")],
)
def test_share_is_rounded_to_none_or_all_only_if_exact(allowed, blocked, share):
    assert blocked_share(series((allowed, blocked))) == share


def test_sparkline_says_what_it_shows_and_never_draws_a_gap_as_zero():
    drawn = call_spark(series((60, 40), None))

    assert 'aria-label="Last hour: 40 of 100 calls blocked"' in drawn
    assert '<path class="calls-plot__gap" d="M1 20h1">' in drawn
    assert "style=" not in drawn
    assert call_spark(series(None, None)) == '<span class="small quiet">No calls reported</span>'
    assert calls_words(series(None)) == "no calls reported"


def test_ranges_are_named_with_their_units():
    assert [range_words(name) for name in call_plot.RANGES] == [
        "1 h", "6 h", "24 h", "7 days", "90 days",
    ]  # fmt: skip
