"""Dead letters in what waits for a person and in the weekly report."""

from dataclasses import replace
from datetime import timedelta

import pytest

from breakers.dead_letters import attention
from breakers.dead_letters import report_sections as report
from breakers.dead_letters.models import (
    Departure,
    DepthMinute,
    Gap,
    GroupDay,
    LetterGroup,
    LetterServer,
    LetterStream,
    Replay,
)
from breakers.tests.fleet import MINUTE, NOW
from controlplane.core.jobs.models import Job
from controlplane.core.page_registry import ATTENTION_SOURCES, REPORT_SECTIONS

pytestmark = pytest.mark.django_db
WEEK = NOW - timedelta(days=3), NOW + timedelta(days=4)
NAME = "axiom:dlq:events"


def stream(name=NAME, **fields):
    arguments = {"server": "default", "origin": "axiom:events", "found_at": NOW, **fields}
    return LetterStream.objects.create(name=name, **arguments)


def departure(of, number, **fields):
    arguments = {
        "action": "retry",
        "state": "done",
        "by": "user:olga",
        "intended_at": NOW,
        **fields,
    }
    return Departure.objects.create(
        stream=of, position=f"{number:020d}-{0:020d}", fields=b"[]", done_at=NOW, **arguments
    )


def test_stream_with_an_alarm_waits_until_it_is_over():
    stream("axiom:dlq:fine", depth=300)
    stream(depth=300, over_since=NOW - 12 * MINUTE, alarmed_at=NOW - 2 * MINUTE)

    (item,) = attention.list_backlogs(NOW)

    assert (item.severity, item.title) == ("warning", f"300 dead letters in {NAME}")
    assert (item.since, item.path) == (
        NOW - 12 * MINUTE, "/dead-letters/default/axiom%3Adlq%3Aevents/",
    )  # fmt: skip


def test_server_that_is_away_waits_if_it_is_still_one_of_ours():
    LetterServer.objects.create(name="default", is_away=True, since=NOW - MINUTE, error="refused")
    LetterServer.objects.create(name="removed", is_away=True, since=NOW)

    (item,) = attention.list_away_servers(NOW)

    assert "default" in item.title
    assert "refused" in item.detail


def test_stream_with_more_than_is_kept_is_told_of_before_it_is_archived(settings):
    settings.DEAD_LETTERS = replace(settings.DEAD_LETTERS, most_kept=100)
    stream(depth=130)
    stream("axiom:dlq:full", depth=100)

    (item,) = attention.list_overfull(NOW)

    assert item.title.startswith(f"30 dead letters of {NAME}")


def test_intent_that_stays_open_waits_after_five_minutes():
    of = stream()
    departure(of, 1, state="intended", intended_at=NOW - 4 * MINUTE)
    assert attention.list_stalled(NOW) == []

    departure(of, 2, state="intended", intended_at=NOW - 6 * MINUTE)

    (item,) = attention.list_stalled(NOW)
    assert (item.kind, item.since) == ("dlq_unsettled", NOW - 6 * MINUTE)


@pytest.mark.parametrize(("minutes", "count"), [(9, 0), (11, 1)])
def test_replay_that_is_held_waits_after_ten_minutes(minutes, count):
    job = Job.objects.create(
        kind="dead_letters", subject=f"dlq:default/{NAME}", state="holding", created_by="user:olga",
        hold_reason="The breaker of core->oracle is not closed.",
        created_at=NOW - minutes * MINUTE,
    )  # fmt: skip
    Replay.objects.create(
        job=job, stream=stream(), action="retry", until="1", rate_per_second=1, most_retries=3
    )

    items = attention.list_stalled(NOW)

    assert [one.kind for one in items] == ["dlq_replay_held"] * count
    assert all("core->oracle" in one.detail for one in items)


def test_report_counts_what_came_and_what_left_in_the_week():
    of = stream(depth=7)
    for minute, arrived, most in ((0, 5, 9), (1, 2, 11)):
        DepthMinute.objects.create(
            stream=of, minute=NOW + minute * MINUTE, sampled_at=NOW, depth=7, arrived=arrived,
            most=most,
        )  # fmt: skip
    for number, action in enumerate(("retry", "retry", "discard", "purge", "age"), start=1):
        departure(of, number, action=action)
    departure(of, 9, state="gone")
    departure(of, 10, intended_at=NOW - timedelta(days=5))
    Gap.objects.create(stream=of, first="1", last="2", count=4, noticed_at=NOW)

    section = report.dead_letters_section(*WEEK, NOW + timedelta(days=1))

    (row,) = section.rows
    assert row.cells == {
        "stream": f"default/{NAME}", "arrived": 7, "retried": 2, "failed_again": 0,
        "discarded": 2, "archived": 1, "vanished": 4, "deepest": 11, "depth": 7,
    }  # fmt: skip
    assert section.tone == "warn"
    assert section.summary == (
        "7 dead letters arrived in 1 stream, in addition to 9 from before; 2 retried (0 failed"
        " again), 3 discarded or archived, 7 waiting now. 4 dead letters removed by other Redis"
        " clients."
    )


def test_report_draws_what_failed_most():
    of = stream(depth=1)
    for number in range(10):
        group = LetterGroup.objects.create(
            stream=of, fingerprint=f"{number:016d}", error_type="TimeoutError",
            pattern=f"kind {number}", first_at=NOW, last_at=NOW,
        )  # fmt: skip
        GroupDay.objects.create(group=group, day=NOW.date(), arrived=number + 1)

    (chart,) = report.dead_letters_section(*WEEK, NOW).charts

    assert len(chart.bars) == 8
    assert chart.bars[0] == ("TimeoutError: kind 9", 10.0)
    assert "TimeoutError: kind 9 10" in chart.alt


def test_letters_that_lie_there_are_to_be_looked_at_before_any_alarm():
    stream(depth=4)

    assert report.dead_letters_section(*WEEK, NOW).tone == "warn"


def test_report_of_a_week_without_dead_letters_says_so():
    stream()

    section = report.dead_letters_section(*WEEK, NOW)

    assert (section.summary, section.tone, section.rows, section.charts) == (
        "No dead letters.",
        "good",
        (),
        (),
    )


def test_sections_are_registered():
    assert report.dead_letters_section in REPORT_SECTIONS.functions()
    waiting = (
        attention.list_backlogs,
        attention.list_away_servers,
        attention.list_stalled,
        attention.list_overfull,
    )
    assert set(waiting) <= {source.function for source in ATTENTION_SOURCES.values()}
