"""Actions on an outage: request the stop of a switch, or force all instances to fall back.

They are called once for each outage, in the transaction that records it. A refused action is
announced and not repeated: a person decides then.
"""

from datetime import datetime
from typing import Any

from django.db import transaction

from breakers import message_facts
from breakers.models import Alarm, Dependency, Override
from breakers.services import override_endings, overrides
from controlplane.core.actors import system
from controlplane.core.audit import services as audit
from controlplane.core.canonical import timestamp
from controlplane.core.errors import DomainError
from controlplane.core.outbox import services as outbox
from controlplane.core.trip_requests import services as trip_requests

from .decision import TRIP, ObservedBreakers, OutageMove, OutagePolicy

POLICY = system("outage-policy")
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
    seen: ObservedBreakers,
    alarm: Alarm,
    now: datetime,
) -> None:
    """Carry out the policy's action and record it in `alarm.evidence`."""
    said = _describe(dependency, policy, seen)
    alarm.evidence |= {"said": said.rstrip("."), "action": policy.action, "switch": policy.switch}
    if policy.action == TRIP:
        done, why = _request_trip(dependency, policy, seen, alarm, said, now)
    else:
        done, why = _force_fallback(dependency, policy, said, now)
    alarm.evidence |= {"done": done, "why": why}
    _announce(dependency, policy, alarm, said, now)


def end_outage(dependency: Dependency, alarm: Alarm, how: OutageMove, now: datetime) -> None:
    """Announce that the outage has ended or is no longer watched, and end its trip request.

    Nothing is released automatically.
    """
    if not alarm.evidence.get("acted"):
        return
    action, switch = alarm.evidence.get("action"), alarm.evidence.get("switch")
    if action == TRIP:
        trip_requests.say_over(
            key=f"{_key(alarm)}:over",
            switch=str(switch),
            source=SOURCE,
            fingerprint=_fingerprint(dependency),
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
    seen: ObservedBreakers,
    alarm: Alarm,
    said: str,
    now: datetime,
) -> tuple[str, str]:
    trip_requests.ask(
        key=_key(alarm),
        switch=policy.switch,
        source=SOURCE,
        fingerprint=_fingerprint(dependency),
        reason=f"Outage of {dependency.callee}. {said}",
        evidence={
            "dependency": dependency.name,
            "open": seen.open,
            "half_open": seen.half_open,
            "instances": seen.fleet,
            "since": timestamp(alarm.since),
        },
        expires_in=policy.expires_in,
        now=now,
    )
    return f"asked to stop {policy.switch}", ""


def _force_fallback(
    dependency: Dependency, policy: OutagePolicy, said: str, now: datetime
) -> tuple[str, str]:
    """Force the breaker open, unless an operator has set an override already."""
    live = Override.objects.filter(dependency=dependency, ended_at__isnull=True).first()
    if live is not None:
        by = override_endings.set_by_label(live)
        return "nothing is forced", f"It is {live.mode} already, by {by}."
    try:
        with transaction.atomic():
            overrides.set_override(
                caller=dependency.caller,
                callee=dependency.callee,
                mode=Override.Mode.FORCED_OPEN,
                reason=f"Outage of {dependency.callee}, all instances fall back. {said}",
                expires_in=policy.expires_in,
                actor=POLICY,
                now=now,
            )
    except DomainError as error:
        return "nothing is forced", error.detail
    return f"every instance falls back for {policy.expires_in}", ""


def _announce(
    dependency: Dependency, policy: OutagePolicy, alarm: Alarm, said: str, now: datetime
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
            "said": said,
            "policy": f"{policy.action} at {policy.open_share:.0%} open",
        },
        now=now,
    )
    audit.record(
        actor=POLICY,
        action=ACTED,
        target=f"dependency:{dependency.name}",
        reason=said,
        after={name: evidence[name] for name in ("action", "switch", "done", "why")},
        now=now,
    )


def _describe(dependency: Dependency, policy: OutagePolicy, seen: ObservedBreakers) -> str:
    trying = f" and half-open in {seen.half_open:,}" if seen.half_open else ""
    return (
        f"The breaker of {dependency.name} is open in {seen.open:,}{trying} of {seen.fleet:,} "
        f"instances; it began more than {policy.for_seconds} s ago."
    )


def _key(alarm: Alarm) -> str:
    return f"outage:{alarm.subject}:{timestamp(alarm.since)}"


def _fingerprint(dependency: Dependency) -> str:
    return f"breaker:{dependency.name}"
