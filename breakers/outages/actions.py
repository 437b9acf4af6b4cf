"""Actions of outage policies: trip a switch, or force all instances to fall back.

An action runs once per outage, in the transaction that records the outage. If it is refused, the
refusal is announced and the action is not retried.
"""

from datetime import datetime
from typing import Any

from django.db import transaction

from breakers import message_facts
from breakers.models import Alarm, Dependency, Override
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
    OutageMove.FORGET: "is forgotten",
    OutageMove.DROP: "is watched no more",
}
END_REASONS = {
    OutageMove.FORGET: "No instance has reported its breaker for five minutes.",
    OutageMove.DROP: "Its policy for outages was taken away; nobody knows whether it lasts.",
}


def act_on_outage(
    dependency: Dependency,
    policy: OutagePolicy,
    observed: ObservedBreakers,
    alarm: Alarm,
    now: datetime,
) -> None:
    """Carry out the policy's action, record it in `alarm.evidence` and announce it."""
    description = _describe_outage(dependency, policy, observed)
    alarm.evidence |= {
        "said": description.rstrip("."),
        "action": policy.action,
        "switch": policy.switch,
    }
    if policy.action == TRIP:
        done, why = _request_trip(dependency, policy, observed, alarm, description, now)
    else:
        done, why = _force_fallback(dependency, policy, description, now)
    alarm.evidence |= {"done": done, "why": why}
    _announce(dependency, policy, alarm, description, now)


def end_outage(dependency: Dependency, alarm: Alarm, how: OutageMove, now: datetime) -> None:
    """Announce the end of an outage, and end its trip request. The switch stays engaged."""
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
    stands = f"{switch} stays as it is until somebody releases it." if action == TRIP else ""
    outbox.announce(
        event=OVER,
        event_key=f"{OVER}:{alarm.pk}",
        subject=message_facts.dependency_thread(dependency),
        facts={
            **message_facts.dependency_facts(dependency),
            "since_at": timestamp(alarm.since),
            "how": END_WORDS[how],
            "why": END_REASONS.get(how),
            "said": stands,
        },
        now=now,
    )
    audit.record(
        actor=POLICY,
        action=OVER,
        target=f"dependency:{dependency.name}",
        reason=END_REASONS.get(how, ""),
        before={"since": timestamp(alarm.since), "action": action},
        now=now,
    )


def _request_trip(
    dependency: Dependency,
    policy: OutagePolicy,
    observed: ObservedBreakers,
    alarm: Alarm,
    description: str,
    now: datetime,
) -> tuple[str, str]:
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
    return f"asked to stop {policy.switch}", ""


def _force_fallback(
    dependency: Dependency, policy: OutagePolicy, description: str, now: datetime
) -> tuple[str, str]:
    live = Override.objects.filter(dependency=dependency, ended_at__isnull=True).first()
    if live is not None:
        return "nothing is forced", f"It is {live.mode} already, by {live.set_by}."
    try:
        with transaction.atomic():
            overrides.set_override(
                caller=dependency.caller,
                callee=dependency.callee,
                mode=Override.Mode.FORCED_OPEN,
                reason=f"Outage of {dependency.callee}, all instances fall back. {description}",
                expires_in=policy.expires_in,
                actor=POLICY,
                now=now,
            )
    except DomainError as error:
        return "nothing is forced", error.detail
    return f"every instance falls back for {policy.expires_in}", ""


def _announce(
    dependency: Dependency, policy: OutagePolicy, alarm: Alarm, description: str, now: datetime
) -> None:
    evidence: dict[str, Any] = alarm.evidence
    outbox.announce(
        event=ACTED,
        event_key=f"{ACTED}:{alarm.pk}",
        subject=message_facts.dependency_thread(dependency),
        facts={
            **message_facts.dependency_facts(dependency),
            "done": evidence["done"],
            "why": evidence["why"],
            "said": description,
            "policy": f"{policy.action} at {policy.open_share:.0%} open",
        },
        now=now,
    )
    audit.record(
        actor=POLICY,
        action=ACTED,
        target=f"dependency:{dependency.name}",
        reason=description,
        after={name: evidence[name] for name in ("action", "switch", "done", "why")},
        now=now,
    )


def _describe_outage(
    dependency: Dependency, policy: OutagePolicy, observed: ObservedBreakers
) -> str:
    trying = f" and half-open in {observed.half_open:,}" if observed.half_open else ""
    return (
        f"The breaker of {dependency.name} is open in {observed.open:,}{trying} of "
        f"{observed.fleet:,} instances; it began more than {policy.for_seconds} s ago."
    )


def _request_key(alarm: Alarm) -> str:
    return f"outage:{alarm.subject}:{timestamp(alarm.since)}"


def _request_fingerprint(dependency: Dependency) -> str:
    return f"breaker:{dependency.name}"
