"""Phases of a ramp: the baseline before it, and one for each started step."""

from datetime import UTC, datetime, timedelta

from controlplane.core.jobs.models import JobStep
from switches.ramps.phases import list_phases

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
