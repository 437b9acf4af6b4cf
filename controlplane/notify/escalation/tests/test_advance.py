"""The escalation tick: one notification each, in time, not too often, never to nobody."""

from datetime import timedelta

import pytest

from controlplane.core.actors import system_actor
from controlplane.core.clock import db_now
from controlplane.core.escalations import services
from controlplane.core.http.tests.callers import at_once
from controlplane.core.outbox.escalation import Escalation
from controlplane.core.outbox.models import OutboxMessage
from controlplane.notify.escalation import engine
from controlplane.notify.models.targets import EscalationStep, Route, Target
from controlplane.notify.targets.tests.people import fill

pytestmark = pytest.mark.django_db

ON_CALL, LEAD, CTO = "email:kim@example.org", "email:lead@example.org", "email:cto@example.org"
FACTS = {"switch": "segment:finance", "reason": "카드 결제가 두 번 청구됨", "path": "/switches/x/"}


@pytest.fixture
def now():
    return db_now()


@pytest.fixture
def matrix():
    fill("on-call", "kim@example.org")
    fill("responsible-team", "team@example.org")
    fill("team-lead", "lead@example.org")
    fill("cto", "cto@example.org")


def opened(now, subject="episode:1", severity="critical", **facts):
    return services.open_escalation(
        subject=subject,
        event="episode.overdue",
        severity=severity,
        facts={**FACTS, **facts},
        now=now,
    )


def list_messages(event=None):
    """Return [(destination, minutes since the first, event)] of the outbox, in order."""
    rows = OutboxMessage.objects.order_by("id")
    return [(row.destination, row.event) for row in rows if event in (None, row.event)]


def to(destination):
    return OutboxMessage.objects.filter(destination=destination)


def minutes(count):
    return timedelta(minutes=count)


def test_first_step_is_told_with_the_facts_in_the_thread_of_the_subject(now, matrix):
    row = opened(now)

    engine.notify_due(now)

    message = OutboxMessage.objects.get()
    assert (message.destination, message.event) == (ON_CALL, "escalation.step")
    assert (message.subject, message.severity) == ("episode:1", "critical")
    payload = message.payload
    assert payload["escalation"] == row.pk
    assert payload["title"] == "segment:finance is OVERDUE: past its expiry and still engaged"
    assert "카드 결제가 두 번 청구됨" in payload["about"]
    assert payload["told_before"] == "nobody"
    assert payload["path"] == "/switches/x/"


def test_each_step_says_who_was_told_before(now, matrix):
    opened(now)

    for later in (0, 5, 15, 30):
        engine.notify_due(now + minutes(later))

    assert [destination for destination, _ in list_messages()] == [ON_CALL, ON_CALL, LEAD, CTO]
    last = OutboxMessage.objects.order_by("id").last().payload
    assert last["told_before"].count("on-call") == 2
    assert "team-lead at " in last["told_before"]
    assert last["now_told"] == "cto"


def test_two_turns_at_the_same_moment_tell_once(now, matrix):
    opened(now)

    engine.notify_due(now)
    engine.notify_due(now)

    assert len(list_messages()) == 1
    assert Escalation.objects.get().notices == 1


@pytest.mark.django_db(transaction=True)
def test_two_beats_race_and_tell_once():
    now = db_now()
    fill("on-call", "kim@example.org")
    for number in range(20):
        opened(now, f"episode:{number}")

    results = at_once(*[lambda: engine.notify_due(now)] * 4)

    assert sum(results) == 20
    assert list_messages() == [(ON_CALL, "escalation.listing")]
    assert set(Escalation.objects.values_list("notices", flat=True)) == {1}


@pytest.mark.django_db(transaction=True)
def test_acknowledging_while_the_tick_runs_loses_neither():
    now = db_now()
    fill("on-call", "kim@example.org")
    opened(now)
    actor = system_actor("test")

    at_once(
        lambda: engine.notify_due(now),
        lambda: services.acknowledge(subject="episode:1", actor=actor, now=now),
    )
    engine.notify_due(now + minutes(10))

    row = Escalation.objects.get()
    assert row.acknowledged_by == "system:test"
    assert len(list_messages()) <= 1


def test_step_that_reaches_nobody_is_skipped_at_once_and_the_message_says_so(now):
    fill("team-lead", "lead@example.org")
    opened(now)

    engine.notify_due(now)

    message = OutboxMessage.objects.get()
    assert message.destination == LEAD
    assert message.payload["not_reached"] == "on-call: not set up"


def test_no_step_reaches_anybody_and_the_routes_are_told(now):
    opened(now)

    engine.notify_due(now)
    engine.notify_due(now + minutes(30))
    engine.notify_due(now + minutes(60))

    assert list_messages() == [("slack", "escalation.step")] * 2
    payload = OutboxMessage.objects.first().payload
    assert payload["now_told"] == "the recipients of the routes"
    assert "cto: not set up" in OutboxMessage.objects.last().payload["not_reached"]


def test_nothing_is_reachable_at_all_and_the_clock_goes_on(now):
    Route.objects.all().delete()
    opened(now)

    assert engine.notify_due(now) == 1
    assert engine.notify_due(now + minutes(60)) == 1

    assert list_messages() == []


def test_clock_stood_still_for_a_day_and_everybody_is_told_once(now, matrix):
    opened(now)

    engine.notify_due(now + timedelta(days=1))
    engine.notify_due(now + timedelta(days=1, seconds=15))

    assert sorted(destination for destination, _ in list_messages()) == sorted([ON_CALL, LEAD, CTO])


def test_acknowledged_is_quiet_for_24_hours_then_daily_until_closed(now, matrix):
    opened(now)
    engine.notify_due(now)
    services.acknowledge(subject="episode:1", actor=system_actor("test"), now=now + minutes(3))
    day = timedelta(days=1)

    for later in (minutes(5), minutes(60), day, day + minutes(2)):
        engine.notify_due(now + later)
    assert len(list_messages()) == 1
    engine.notify_due(now + day + minutes(3))
    assert len(list_messages()) == 2
    assert "by system:test" in OutboxMessage.objects.last().payload["acknowledged"]
    engine.notify_due(now + 2 * day + minutes(3))
    assert len(list_messages()) == 3
    services.close(subject="episode:1", now=now + 2 * day + minutes(4))
    engine.notify_due(now + 9 * day)
    assert len(list_messages()) == 3


def test_opened_again_while_open_changes_nothing_and_after_closing_begins_anew(now, matrix):
    first = opened(now)
    again = opened(now + minutes(1))
    services.close(subject="episode:1", now=now + minutes(2))
    third = opened(now + minutes(3))

    assert first.pk == again.pk != third.pk


def test_up_to_three_are_told_apart_and_more_in_one_message(now, matrix):
    for number in range(3):
        opened(now, f"episode:{number}")
    engine.notify_due(now)
    assert list_messages() == [(ON_CALL, "escalation.step")] * 3

    for number in range(10, 25):
        opened(now + minutes(1), f"episode:{number}", switch=f"feature:f{number}")
    engine.notify_due(now + minutes(1))

    assert list_messages("escalation.listing") == [(ON_CALL, "escalation.listing")]
    payload = OutboxMessage.objects.get(event="escalation.listing").payload
    assert payload["count"] == 15
    assert "and 7 more" in payload["list"]
    assert payload["path"] == "/attention/"


def test_storm_without_any_step_is_one_message_by_the_routes(now):
    for number in range(200):
        opened(now, f"episode:{number}")

    engine.notify_due(now)

    assert list_messages() == [("slack", "escalation.listing")]


def test_changed_steps_are_honoured_by_what_is_open(now, matrix):
    opened(now)
    engine.notify_due(now)
    critical = Target.objects.get(name="critical")
    EscalationStep.objects.filter(escalation=critical, position=1).delete()
    EscalationStep.objects.filter(escalation=critical, position=2).update(
        position=1, after_minutes=1
    )
    Escalation.objects.update(next_at=now)  # As changing a target does.

    engine.notify_due(now + minutes(1))

    assert [destination for destination, _ in list_messages()] == [ON_CALL, LEAD]


def test_sixty_in_half_a_day_that_nobody_acknowledges_are_no_storm(now, matrix):
    begins = [now + minutes(12 * number) for number in range(60)]
    for turn in range(12 * 12):
        tick = now + minutes(5 * turn)
        while begins and begins[0] <= tick:
            opened(begins.pop(0), f"episode:{len(begins)}")
        engine.notify_due(tick)

    assert Escalation.objects.filter(notices=0).count() == 0
    # Each is told once as a step, and with all others twice an hour at most once they are many.
    late = to(CTO).filter(created_at__gte=now + timedelta(hours=8))
    assert late.filter(event="escalation.listing").count() <= 2 * 4
    assert late.count() <= (5 + 2 * 3) * 4
    assert to(CTO).count() <= 60 + 12 * 8


def test_reminders_of_many_fall_into_one_a_day(now, matrix):
    for number in range(40):
        opened(now, f"episode:{number}")
    engine.notify_due(now)
    for number in range(40):
        services.acknowledge(
            subject=f"episode:{number}", actor=system_actor("test"), now=now + minutes(10 * number)
        )
    OutboxMessage.objects.all().delete()

    for hour in range(4 * 24):
        engine.notify_due(now + minutes(60 * hour))
    third_day = now + timedelta(days=2, hours=1)
    told_later = OutboxMessage.objects.filter(created_at__gte=third_day)

    assert told_later.count() <= 2
    assert {message.event for message in told_later} == {"escalation.listing"}
