"""Pending work of ticks: a tick that has work never counts as idle."""

import uuid
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from breakers.models import Alarm, BreakerState, Dependency, Override, Probe, Service
from controlplane.core import ticks
from controlplane.core.clock import db_now
from controlplane.core.degradation.models import Degradation
from controlplane.core.gates.models import Gate
from controlplane.core.instances.models import Instance
from controlplane.core.jobs.models import Job
from controlplane.core.outbox.escalation import Escalation
from controlplane.core.outbox.models import OutboxMessage
from controlplane.core.trip_requests.models import TripRequest
from slo.arithmetic.minutes import due_minute
from slo.models import DeferredUpdate, EvaluatedMinute, ReportedEvents, Sli, Slo
from switches.models import EmergencyOrder, Episode, LostVersion, Switch

pytestmark = pytest.mark.django_db
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
DECLARED = {name for name, tick in ticks.list_ticks().items() if tick.pending is not None}


def is_idle(name: str) -> bool:
    return name in ticks.find_idle([name])


def past_expiry(now: datetime) -> None:
    switch = Switch.objects.create(
        pk="feature:chat", scope="feature", key="chat", registered_at=now
    )
    Episode.objects.create(
        switch=switch,
        reason="INC-1",
        engaged_by_type="user",
        engaged_by_name="kim",
        engaged_by_identity="user:1",
        engaged_at=now - MINUTE,
        engaged_version=1,
        on_expiry="release",
        salt="a",
        expires_at=now - SECOND,
    )


def lost_version(now: datetime) -> None:
    LostVersion.objects.create(
        epoch=uuid.uuid4(), version=1, published_at=now, entries=[], plane="dp-1"
    )


def job(kind: str, **fields: object) -> Callable[[datetime], None]:
    def create(now: datetime) -> None:
        given = {"next_at": now - SECOND, **fields}
        Job.objects.create(kind=kind, subject="1", created_by="kim", created_at=now, **given)

    return create


def job_of_a_clock_that_was_set_back(now: datetime) -> None:
    job("ramp", next_at=now + 20 * MINUTE, heartbeat_at=now + 20 * MINUTE)(now)


def message(**fields: object) -> Callable[[datetime], None]:
    def create(now: datetime) -> None:
        given = {"created_at": now, "next_attempt_at": now - SECOND, **fields}
        OutboxMessage.objects.create(event="e", event_key="k", destination="d", payload={}, **given)

    return create


def message_of_a_clock_that_was_set_back(now: datetime) -> None:
    ahead = now + 20 * MINUTE
    message(created_at=ahead, next_attempt_at=ahead)(now)


def lease_of_a_clock_that_was_set_back(now: datetime) -> None:
    ahead = now + 20 * MINUTE
    message(next_attempt_at=ahead, lease_until=ahead, attempts=8)(now)


def gate(type: str) -> Callable[[datetime], None]:
    return lambda now: Gate.objects.create(key="k", type=type, spec={}, since=now) and None


def dependency(now: datetime) -> Dependency:
    return Dependency.objects.create(
        caller="core", callee="oracle", registered_at=now, changed_at=now
    )


def override(now: datetime) -> None:
    Override.objects.create(
        dependency=dependency(now),
        mode="forced_open",
        reason="INC-1",
        set_by_type="user",
        set_by_name="kim",
        set_at=now - MINUTE,
        expires_at=now - SECOND,
        version=1,
    )


def breaker(state: str) -> Callable[[datetime], None]:
    def create(now: datetime) -> None:
        BreakerState.objects.create(
            dependency=dependency(now),
            instance="core/1",
            boot=uuid.uuid4(),
            state=state,
            changed_at=now,
        )

    return create


def probe_away(now: datetime) -> None:
    service = Service.objects.create(
        slug="oracle", name="Oracle", probe_url="http://localhost/", changed_at=now
    )
    Probe.objects.create(service=service, is_away=True)


def falling_cause(_now: datetime) -> None:
    Degradation.objects.update(falling={"core->oracle": "2026-01-01T00:00:00Z"})


def lasting_outage(now: datetime) -> None:
    Alarm.objects.create(
        rule="outage",
        subject="core->oracle",
        severity="critical",
        value=1,
        limit=1,
        since=now,
        seen_at=now,
    )


def silent_instance(seconds: int) -> Callable[[datetime], None]:
    def create(now: datetime) -> None:
        reported_at = now - timedelta(seconds=seconds)
        Instance.objects.create(id="core/1", service="core", reported_at=reported_at)

    return create


def slo(now: datetime, source: object = None) -> Slo:
    given = {"source": source} if source else {}
    return Slo.objects.create(
        name="answers", kind="ratio", target="0.99", created_at=now, changed_at=now, **given
    )


def slo_judged(minutes_ago: int) -> Callable[[datetime], None]:
    """The newest judged minute is the one that is due, or another; it was judged just now."""

    def create(now: datetime) -> None:
        slo(now)
        EvaluatedMinute.objects.create(minute=due_minute(now) - minutes_ago, evaluated_at=now)

    return create


def delayed(now: datetime) -> None:
    sli = Sli.objects.create(slo=slo(now), created_at=now)
    DeferredUpdate.objects.create(sli=sli, began=0, ended=60_000_000, good=1, total=1)


def reported(now: datetime) -> None:
    ReportedEvents.objects.create(
        slo="answers", instance="core/1", began_at=now - SECOND, ended_at=now, good=1, total=1
    )


def trip_request(now: datetime) -> None:
    TripRequest.objects.create(
        key="k", switch="feature:chat", source="slo", fingerprint="f", reason="r", requested_at=now
    )


def escalation(subject: str) -> Callable[[datetime], None]:
    def create(now: datetime) -> None:
        Escalation.objects.create(
            subject=subject,
            event="e",
            severity="critical",
            opened_at=now - MINUTE,
            next_at=now - SECOND,
        )

    return create


def emergency_order(**fields: object) -> Callable[[datetime], None]:
    def create(now: datetime) -> None:
        given = {"by_type": "user", "by_name": "kim", "by_id": 1, "at": now, "plane": "dp-1"}
        EmergencyOrder.objects.create(
            id=uuid.uuid4(), action="engage", switch="feature:chat", reason="r", **given, **fields
        )

    return create


def refused_order(now: datetime) -> None:
    emergency_order(state="refused", blocks_until=now - SECOND)(now)


WORK = [
    ("switches.lost_versions", lost_version),
    ("switches.expire", past_expiry),
    ("emergency.reconcile", emergency_order()),
    ("emergency.reconcile", refused_order),
    ("ramps.turn", job("ramp")),
    ("ramps.turn", job_of_a_clock_that_was_set_back),
    ("dlq.jobs", job("dead_letters")),
    ("outbox.sweep", message()),
    ("outbox.sweep", lambda now: message(lease_until=now - SECOND, attempts=8)(now)),
    ("outbox.sweep", message_of_a_clock_that_was_set_back),
    ("outbox.sweep", lease_of_a_clock_that_was_set_back),
    ("breakers.gates", gate("breaker")),
    ("slo.gates", gate("slo")),
    ("breakers.overrides", override),
    ("breakers.conditions", breaker("open")),
    ("breakers.conditions", breaker("half_open")),
    ("breakers.conditions", probe_away),
    ("breakers.conditions", falling_cause),
    ("breakers.outages", breaker("open")),
    ("breakers.outages", lasting_outage),
    ("breakers.watch", silent_instance(35)),
    ("breakers.watch", silent_instance(310)),
    ("slo.judge", slo),
    ("slo.judge", slo_judged(1)),
    ("slo.judge", slo_judged(-10)),
    ("slo.fold", reported),
    ("slo.fold", delayed),
    ("slo.poll", lambda now: slo(now, {"type": "prometheus", "url": "http://localhost"})),
    ("trips.requested", trip_request),
    ("trips.settle", escalation("trip:1")),
    ("escalation.advance", escalation("switch:feature:chat")),
]


@pytest.mark.parametrize(("name", "create"), WORK)
def test_tick_with_work_is_not_idle(name, create):
    assert is_idle(name)

    create(db_now())

    assert not is_idle(name)


def test_every_declaration_is_tried_here():
    no_kind_of_its_own = {"jobs.turn"}

    assert DECLARED - no_kind_of_its_own == {name for name, _ in WORK}


@pytest.mark.parametrize(
    ("name", "create"),
    [
        ("ramps.turn", lambda now: job("ramp", next_at=now + MINUTE)(now)),
        ("outbox.sweep", message(state="sent")),
        ("breakers.conditions", breaker("closed")),
        ("breakers.watch", silent_instance(1)),
        ("slo.judge", slo_judged(0)),
        ("slo.poll", slo),
    ],
)
def test_tick_without_work_is_idle(name, create):
    create(db_now())

    assert is_idle(name)


def test_tick_that_declares_nothing_always_has_work():
    assert ticks.find_idle(["dlq.sample", "switches.expire"]) == {"switches.expire"}
