"""Phases of a ramp: the baseline before it, and one for each started step."""

from datetime import UTC, datetime, timedelta

import pytest

from controlplane.core.jobs.models import JobStep
from switches.ramps.phases import list_phases, load_phases
from switches.ramps.tests.ramp_helpers import CHAT, engage, release

ENGAGED = datetime(2026, 11, 26, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def step(index: int, percent: int, started: datetime | None, finished: datetime | None = None):
    return JobStep(index=index, data={"percent": percent}, started_at=started, finished_at=finished)


def test_started_steps_follow_the_time_before_and_during_the_engagement():
    began, now = ENGAGED + 10 * MINUTE, ENGAGED + 17 * MINUTE
    steps = [step(0, 5, began, began + 5 * MINUTE), step(1, 25, began + 5 * MINUTE)]

    phases = list_phases(ENGAGED, steps, now)

    assert [(one.name, one.percent, one.begins, one.ends) for one in phases] == [
        ("Before engaging", 100, ENGAGED - 30 * MINUTE, ENGAGED),
        ("Engaged", 0, ENGAGED, began),
        ("Step 1", 5, began, began + 5 * MINUTE),
        ("Step 2", 25, began + 5 * MINUTE, now),
    ]


def test_long_engagement_is_compared_by_its_last_half_hour():
    began = ENGAGED + timedelta(hours=9)

    (_, engaged, _) = list_phases(ENGAGED, [step(0, 5, began)], began + MINUTE)

    assert (engaged.begins, engaged.ends) == (began - 30 * MINUTE, began)


def test_ramp_that_has_not_begun_has_only_the_baseline():
    phases = list_phases(ENGAGED, [step(0, 5, None)], ENGAGED + MINUTE)

    assert [one.name for one in phases] == ["Before engaging", "Engaged"]


@pytest.mark.parametrize(
    ("previous_engagement_end", "minutes"),
    [
        (ENGAGED - 31 * MINUTE, 30),
        (ENGAGED - 10 * MINUTE, 10),
        (ENGAGED - 9.5 * MINUTE, 9),
        (ENGAGED - 0.5 * MINUTE, 0),
        (ENGAGED, 0),
    ],
)
def test_time_before_engaging_excludes_the_engagement_before(previous_engagement_end, minutes):
    (before, _) = list_phases(
        ENGAGED, [], ENGAGED + MINUTE, previous_engagement_end=previous_engagement_end
    )

    assert (before.begins, before.ends) == (ENGAGED - minutes * MINUTE, ENGAGED)
    assert before.note == ("" if minutes else "no full minute after the previous engagement")


def test_engaged_phase_excludes_the_ramp_before():
    began, aborted = ENGAGED + 20 * MINUTE, ENGAGED + 12 * MINUTE

    (_, engaged, _) = list_phases(ENGAGED, [step(0, 5, began)], began, previous_ramp_end=aborted)

    assert (engaged.begins, engaged.ends) == (aborted, began)


@pytest.mark.parametrize(
    ("begins", "seconds", "has_full_minute"),
    [(0, 60, True), (0, 59, False), (42, 77, False), (42, 78, True)],
)
def test_phase_counts_events_once_it_contains_a_full_minute(begins, seconds, has_full_minute):
    began = ENGAGED + timedelta(seconds=begins)

    (*_, phase) = list_phases(ENGAGED, [step(0, 5, began)], began + timedelta(seconds=seconds))

    assert phase.has_full_minute is has_full_minute


@pytest.mark.django_db
def test_phases_of_a_second_engagement_begin_after_the_first():
    engage(CHAT, ENGAGED)
    release(CHAT, ENGAGED + 5 * MINUTE, mode="immediate")
    engage(CHAT, ENGAGED + 10 * MINUTE)
    release(CHAT, ENGAGED + 12 * MINUTE)
    engage(CHAT, ENGAGED + 14 * MINUTE)
    ramp = release(CHAT, ENGAGED + 18 * MINUTE).ramp

    before, engaged, _ = load_phases(ramp, ENGAGED + 19 * MINUTE).phases

    assert (before.begins, before.ends) == (ENGAGED + 5 * MINUTE, ENGAGED + 10 * MINUTE)
    assert (engaged.begins, engaged.ends) == (ENGAGED + 14 * MINUTE, ENGAGED + 18 * MINUTE)
