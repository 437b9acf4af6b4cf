"""Hundreds of ramps at once: a message in each thread, and one for all in the channel."""

from collections import Counter
from datetime import timedelta

import pytest

from controlplane.core.clock import db_now
from controlplane.core.gates import external
from controlplane.core.jobs import engine
from controlplane.core.outbox.models import OutboxMessage, Thread
from controlplane.notify.delivery import claims, collected_changes
from switches import services
from switches.models import Episode, Ramp
from switches.ramps import actions
from switches.ramps.tests.ramp_helpers import SHELL, SMOKE
from switches.tests import messages

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("slack_configured")]

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
LOUDEST_HOUR = 20
STREAM = 24
"""Ramps that begin a minute after each other: of four messages each, if they were told singly."""
WHY = "provider confirmed the fix 2.14.1"


def engage(key, now, **more):
    arguments = {"reason": "card payments charged twice", "expires_in": "1h", "on_expiry": "ramp"}
    done = services.engage(scope="feature", key=key, actor=SHELL, now=now, **{**arguments, **more})
    return done.episode


def ramp(key, now, *gates_of_first):
    plan = [{"percent": 5, "gates": list(gates_of_first)}, {"percent": 100}]
    return services.release(
        scope="feature", key=key, justification=WHY, plan=plan, actor=SHELL, now=now
    ).ramp


def turn(now):
    services.expire_due(now)
    while engine.run_tick("ramps.turn", now):
        pass


def told_since(now):
    """Return the number of messages to the channel since `now`, by event."""
    found = OutboxMessage.objects.filter(created_at__gte=now, destination="slack")
    return Counter(found.values_list("event", flat=True))


def in_a_thread(episode):
    """Create the thread that the message about the engage would have begun."""
    Thread.objects.create(
        destination="slack",
        subject=f"episode:{episode.pk}",
        channel="C1",
        ts="1.0",
        created_at=episode.engaged_at,
    )


def test_one_that_ramps_by_itself_is_told_of_step_by_step():
    now = db_now()
    engage("a", now)
    at = now + HOUR

    for minutes in (0, 6, 12, 18):
        turn(at + minutes * MINUTE)

    expected = {"ramp.started": 1, "ramp.advanced": 2, "switch.released": 1}
    assert told_since(at) == expected


def test_many_of_one_expiry_are_told_of_in_two_messages():
    now = db_now()
    for number in range(12):
        engage(f"f{number}", now)
    at = now + HOUR

    for minutes in (0, 6, 12, 18):
        turn(at + minutes * MINUTE)

    assert told_since(at) == {"episodes.expired": 1, "ramps.released": 1}
    (expired,) = messages.find("episodes.expired")
    (released,) = messages.find("ramps.released")
    assert expired.payload["ramping"].endswith("and 2 more")
    assert released.payload["count"] == 12
    assert {*released.payload["switches"]} == {f"feature:f{number}" for number in range(12)}
    assert released.payload["list"].endswith("and 2 more")
    assert Episode.objects.filter(ended_how="released").count() == 12


def test_many_go_on_in_the_threads_of_their_own():
    now = db_now()
    for number in range(5):
        in_a_thread(engage(f"f{number}", now))
    at = now + HOUR

    for minutes in (0, 6, 12, 18):
        turn(at + minutes * MINUTE)

    ramp_messages = OutboxMessage.objects.filter(created_at__gte=at, payload__switch="feature:f3")
    events = ["ramp.started", "ramp.advanced", "ramp.advanced", "switch.released"]
    assert [*ramp_messages.order_by("id").values_list("event", flat=True)] == events
    assert {*ramp_messages.values_list("severity", flat=True)} == {"info"}


@pytest.mark.slow
def test_a_steady_stream_of_expiries_is_no_storm():
    now = db_now()
    for number in range(STREAM):
        engage(f"f{number}", now + number * MINUTE)
    at = now + HOUR

    for minutes in range(STREAM + 20):
        turn(at + minutes * MINUTE)

    assert Episode.objects.filter(ended_how="released").count() == STREAM
    counts = told_since(at)
    assert min(counts["ramps.started"], counts["ramps.released"]) >= 2
    assert sum(counts.values()) <= LOUDEST_HOUR, counts
    named = [
        name for message in messages.find("ramps.released") for name in message.payload["switches"]
    ]
    singly = [message.payload["switch"] for message in messages.find("switch.released")]
    assert sorted(named + singly) == sorted(f"feature:f{number}" for number in range(STREAM))


def test_what_waits_to_collect_goes_out_after_a_while_and_no_more_joins_it():
    now = db_now()
    for number in range(5):
        engage(f"f{number}", now - HOUR - 17 * MINUTE)
    for minutes in (-17, -11, -5):
        turn(now + minutes * MINUTE)
    turn(now + MINUTE)
    (digest,) = messages.find("ramps.released")

    assert collected_changes.is_open("ramps.released", now + MINUTE)
    assert not claims.due_messages(now + MINUTE).filter(pk=digest.pk).exists()
    later = now + MINUTE + timedelta(seconds=40)
    assert not collected_changes.is_open("ramps.released", later)
    assert claims.due_messages(later).filter(pk=digest.pk).exists()


def test_aborts_are_told_of_one_by_one_however_many():
    now = db_now()
    for number in range(6):
        engage(f"f{number}", now - 2 * HOUR)
    turn(now - MINUTE)

    for ramp_aborted in Ramp.objects.filter(live=True):
        actions.abort(ramp_id=ramp_aborted.pk, reason=WHY, actor=SHELL, now=now)

    assert told_since(now)["ramp.aborted"] == 6


def test_ramps_that_people_began_are_told_of_one_by_one():
    now = db_now()
    for number in range(6):
        engage(f"f{number}", now)
        ramp(f"f{number}", now)

    turn(now + 6 * MINUTE)
    turn(now + 12 * MINUTE)

    counts = told_since(now + MINUTE)
    assert counts == {"ramp.advanced": 6, "switch.released": 6}


def test_a_gate_that_fails_for_all_is_told_of_ten_and_then_together():
    now = db_now()
    for number in range(14):
        in_a_thread(engage(f"f{number}", now))
        ramp(f"f{number}", now, SMOKE)
    external.record_verdict(
        name="smoke", verdict="fail", evidence={"errors": 3}, actor=SHELL, now=now + MINUTE
    )

    turn(now + MINUTE)

    assert not Episode.objects.exclude(allow_percent=0).exists()
    (digest,) = messages.find("ramps.compensated")
    assert (digest.payload["count"], digest.severity) == (4, "critical")
    assert "external gate smoke" in digest.payload["first_said"]
    singles = messages.find("ramp.compensated")
    assert Counter(message.severity for message in singles) == {"critical": 10, "info": 4}
    in_digest = {message.payload["switch"] for message in singles if message.severity == "info"}
    assert {*digest.payload["switches"]} == in_digest


def test_many_that_hold_are_told_of_ten_and_then_together():
    now = db_now()
    for number in range(13):
        engage(f"f{number}", now, expires_in="24h")
        ramp(f"f{number}", now, SMOKE)

    turn(now + 6 * MINUTE)

    counts = told_since(now + 6 * MINUTE)
    assert counts == {"ramp.held": 10, "ramps.held": 1}
    (digest,) = messages.find("ramps.held")
    assert (digest.payload["count"], digest.severity) == (3, "warning")
