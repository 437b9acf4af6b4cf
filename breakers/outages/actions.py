"""Actions of outage policies: trip a switch, or force all instances to fall back.

An action runs once per outage, in the transaction that records the outage. If it is refused, the
refusal is announced and the action is not retried.
"""

from datetime import datetime
from typing import Any

from django.db import transaction

from breakers import message_facts
from breakers.models import Alarm, Dependency, Override
from breakers.names import format_instances
from breakers.services import overrides
from controlplane.core.actors import system_actor
from controlplane.core.audit import services as audit
from controlplane.core.canonical import timestamp
from controlplane.core.errors import DomainError
from controlplane.core.outbox import services as outbox
from controlplane.core.trip_requests import services as trip_requests

from .decision import TRIP, ObservedBreakers, OutageMove, OutagePolicy

POLICY = system_actor("outage-policy")
SOURCE = "provider-outage"
ACTED, OVER = "outage.acted", "outage.over"
END_WORDS = {
    OutageMove.RECOVER: "is over",
    OutageMove.FORGET: "is no longer reported",
    OutageMove.DROP: "is no longer watched",
}
END_REASONS = {
    OutageMove.FORGET: "No instance has reported its breaker for five minutes.",
    OutageMove.DROP: (
        "Its outage policy was removed, so it is unknown whether the outage continues."
    ),
}


def act_on_outage(
    dependency: Dependency,
    policy: OutagePolicy,
    observed: ObservedBreakers,
    alarm: Alarm,
    now: datetime,
) -> None:
    """Carry out the outage policy's action, record it in `alarm.evidence` and announce it."""
    counts = format_instances(observed.open, observed.fleet)
    if observed.half_open:
        trying = format_instances(observed.half_open, observed.fleet)
        counts = f"{observed.open:,} and half-open in {trying}"
    description = (
        f"The breaker of {dependency.label} is open in {counts}; this began more than "
        f"{policy.for_seconds} s ago."
    )
    if policy.action == TRIP:
        _request_trip(dependency, policy, observed, alarm, description, now)
        done, why = f"requested to engage {policy.switch}", ""
    else:
        done, why = _force_fallback(dependency, policy, description, now)
    result = {"action": policy.action, "switch": policy.switch, "done": done, "why": why}
    alarm.evidence |= {"said": description.rstrip("."), **result}
    facts = {
        "done": done,
        "why": why,
        "said": description,
        "policy": f"{policy.action} at {policy.open_share:.0%} open",
    }
    _publish(ACTED, dependency, alarm, facts, description, now, after=result)


def end_outage(dependency: Dependency, alarm: Alarm, how: OutageMove, now: datetime) -> None:
    """Announce the end of an outage whose action has run, and end its trip request, if any.

    The switch that the action engaged stays engaged.
    """
    if not alarm.evidence.get("acted"):
        return
    action, switch = alarm.evidence.get("action"), alarm.evidence.get("switch")
    if action == TRIP:
        trip_requests.report_cause_over(
            key=f"{_request_key(alarm)}:over",
            switch=str(switch),
            source=SOURCE,
            fingerprint=_request_fingerprint(dependency),
            now=now,
        )
    effect = f"{switch} stays engaged until someone releases it." if action == TRIP else ""
    facts = {
        "since_at": timestamp(alarm.since),
        "how": END_WORDS[how],
        "why": END_REASONS.get(how),
        "said": effect,
    }
    before = {"since": timestamp(alarm.since), "action": action}
    _publish(OVER, dependency, alarm, facts, END_REASONS.get(how, ""), now, before=before)


def _request_trip(
    dependency: Dependency,
    policy: OutagePolicy,
    observed: ObservedBreakers,
    alarm: Alarm,
    description: str,
    now: datetime,
) -> None:
    trip_requests.request_trip(
        key=_request_key(alarm),
        switch=policy.switch,
        source=SOURCE,
        fingerprint=_request_fingerprint(dependency),
        reason=f"Outage of {dependency.callee}. {description}",
        evidence={
            "dependency": dependency.name,
            "open": observed.open,
            "half_open": observed.half_open,
            "instances": observed.fleet,
            "since": timestamp(alarm.since),
        },
        expires_in=policy.expires_in,
        now=now,
    )


def _force_fallback(
    dependency: Dependency, policy: OutagePolicy, description: str, now: datetime
) -> tuple[str, str]:
    """Force all breakers open, so that callers fall back, unless an override is live.

    Return the effect as text, and the reason if nothing was forced.
    """
    live = Override.objects.filter(dependency=dependency, ended_at__isnull=True).first()
    if live is not None:
        mode = live.mode.replace("_", " ")
        return "no breaker was forced", f"It is already {mode}, set by {live.set_by}."
    try:
        with transaction.atomic():
            overrides.set_override(
                caller=dependency.caller,
                callee=dependency.callee,
                mode=Override.Mode.FORCED_OPEN,
                reason=(
                    f"Outage of {dependency.callee}: all instances use the fallback. {description}"
                ),
                expires_in=policy.expires_in,
                actor=POLICY,
                now=now,
            )
    except DomainError as error:
        return "no breaker was forced", error.detail
    return f"all instances use the fallback for {policy.expires_in}", ""


def _publish(
    event: str,
    dependency: Dependency,
    alarm: Alarm,
    facts: dict[str, Any],
    reason: str,
    now: datetime,
    **change: dict[str, Any],
) -> None:
    """Announce an event of an outage, and write its audit row with `change`: `before` or `after`.

    The audit row comes last, as writing it locks the audit trail.
    """
    outbox.announce(
        event=event,
        event_key=f"{event}:{alarm.pk}",
        subject=message_facts.build_thread("dependency", dependency.name),
        resource=f"dependency:{dependency.name}",
        facts={**message_facts.dependency_facts(dependency), **facts},
        now=now,
    )
    target = f"dependency:{dependency.name}"
    audit.record(actor=POLICY, action=event, target=target, reason=reason, now=now, **change)


def _request_key(alarm: Alarm) -> str:
    return f"outage:{alarm.subject}:{timestamp(alarm.since)}"


def _request_fingerprint(dependency: Dependency) -> str:
    return f"breaker:{dependency.name}"
