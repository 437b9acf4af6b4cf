"""Scheduled drills: begun once per round, or reported as missed."""

from datetime import timedelta

import pytest

from controlplane.core.audit.models import AuditEntry
from controlplane.core.errors import Forbidden, InvalidInput, NotFound
from controlplane.core.http.tests.callers import at_once, person
from switches import services as switches
from switches.drills import schedules, services
from switches.drills.tests.drill_helpers import CANARY, SHELL, WHY, audit_actions, begin, mark
from switches.models import Drill, DrillSchedule, Switch
from switches.tests.browsers import REASON

WEEK, DAY = timedelta(days=7), timedelta(days=1)


def weekly(now, switch="segment:finance", every="7d", **more):
    scope, _, key = switch.partition(":")
    arguments = {"mode": "live", "reason": WHY, "actor": SHELL, **more}
    return services.schedule_drill(scope=scope, key=key, every=every, now=now, **arguments)


def missed():
    return [entry.reason for entry in AuditEntry.objects.filter(action="drill.missed")]


def test_begins_when_its_time_has_come_and_not_before(now):
    mark(CANARY, now=now)
    row = weekly(now)
    assert row.next_at == now + WEEK

    assert schedules.begin_due(now + WEEK - timedelta(seconds=1)) == 0
    assert schedules.begin_due(now + WEEK) == 1

    drill = Drill.objects.get()
    assert (drill.switch_id, drill.mode, drill.scheduled) == ("segment:finance", "live", True)
    assert drill.job.key is not None
    assert drill.job.reason == WHY
    assert DrillSchedule.objects.get().next_at == now + 2 * WEEK


def test_once_for_any_number_of_ticks(now):
    mark(CANARY, now=now)
    weekly(now)

    assert [schedules.begin_due(now + WEEK) for _ in range(3)] == [1, 0, 0]
    assert Drill.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_two_ticks_at_the_same_moment_begin_one(now):
    mark(CANARY, now=now)
    weekly(now)

    begun = at_once(*[lambda: schedules.begin_due(now + WEEK)] * 3)

    assert sorted(begun) == [0, 0, 1]
    assert Drill.objects.count() == 1
    assert missed() == []


def test_several_begin_each(now):
    mark(CANARY, now=now)
    weekly(now)
    weekly(now, "feature:search")

    assert schedules.begin_due(now + WEEK) == 2


def test_long_pause_is_followed_by_one_and_not_by_many(now):
    mark(CANARY, now=now)
    weekly(now)
    later = now + 10 * WEEK

    assert [schedules.begin_due(later), schedules.begin_due(later)] == [1, 0]
    assert DrillSchedule.objects.get().next_at == later + WEEK


def test_what_began_late_moves_none_of_those_that_follow(now):
    mark(CANARY, now=now)
    weekly(now)

    assert schedules.begin_due(now + WEEK + timedelta(hours=9)) == 1

    assert DrillSchedule.objects.get().next_at == now + 2 * WEEK


def test_what_had_to_be_tried_again_moves_none_of_those_that_follow(now):
    weekly(now)
    assert schedules.begin_due(now + WEEK) == 0
    mark(CANARY, now=now)

    assert schedules.begin_due(now + WEEK + DAY) == 1

    assert DrillSchedule.objects.get().next_at == now + 2 * WEEK


def test_trying_again_takes_no_longer_than_the_next_round(now):
    weekly(now, every="1d")

    assert schedules.begin_due(now + DAY + timedelta(hours=9)) == 0

    assert DrillSchedule.objects.get().next_at == now + 2 * DAY


def test_one_that_can_not_begin_says_why_and_is_tried_again_the_next_day(now):
    mark(CANARY, now=now)
    weekly(now)
    switches.engage(
        scope="segment", key="finance", reason=REASON, expires_in="24h", actor=SHELL, now=now
    )

    assert schedules.begin_due(now + WEEK) == 0

    assert len(missed()) == 1
    assert "engaged" in missed()[0]
    assert not Drill.objects.exists()
    assert DrillSchedule.objects.get().next_at == now + WEEK + DAY


def test_without_marks_it_says_how_to_mark(now):
    weekly(now)

    schedules.begin_due(now + WEEK)

    assert "drills/instances/" in missed()[0]


def test_one_that_is_under_way_by_hand_is_left_alone(now):
    mark(CANARY, now=now)
    weekly(now)
    begin(now=now)

    schedules.begin_due(now + WEEK)

    assert "already running" in missed()[0]
    assert Drill.objects.count() == 1


def test_scheduling_anew_replaces_what_was(now):
    weekly(now)
    weekly(now, every="30d", mode="dry")

    row = DrillSchedule.objects.get()
    assert (row.every_days, row.mode) == (30, "dry")


@pytest.mark.parametrize("every", ["", "12h", "36h", "0d", "366d", "7", "weekly"])
def test_only_whole_days_up_to_a_year(now, every):
    with pytest.raises(InvalidInput, match="every"):
        weekly(now, every=every)
    assert not Switch.objects.exists()


@pytest.mark.parametrize(("every", "days"), [("1d", 1), ("24h", 1), ("2w", 14), ("365d", 365)])
def test_days_however_written(now, every, days):
    assert weekly(now, every=every).every_days == days


def test_removed_one_comes_round_no_more(now):
    mark(CANARY, now=now)
    weekly(now)

    services.remove_schedule(scope="segment", key="finance", actor=SHELL, now=now)

    assert schedules.begin_due(now + WEEK) == 0
    assert audit_actions()[-2:] == ["drill.scheduled", "drill.unscheduled"]
    with pytest.raises(NotFound):
        services.remove_schedule(scope="segment", key="finance", actor=SHELL, now=now)


def test_viewer_may_not(now):
    viewer = person("viewer").as_actor()

    with pytest.raises(Forbidden):
        weekly(now, actor=viewer)
    with pytest.raises(Forbidden):
        services.remove_schedule(scope="segment", key="finance", actor=viewer, now=now)
