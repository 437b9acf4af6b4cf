"""Functions that decide each trip request and record it with its evidence.

The advisory lock for trips is taken first, so one of several equal requests engages the switch and
the others are repeats. The :class:`Publication` row, which changes by people need too, is locked
only to engage; the request is then decided again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db import transaction

from controlplane.core import authority
from controlplane.core.actions import Action
from controlplane.core.actors import Actor, system_actor
from controlplane.core.audit import services as audit
from controlplane.core.errors import Conflict, InvalidInput
from controlplane.core.trip_requests import services as trip_requests
from controlplane.core.trip_requests.models import TripRequest
from switches import publication
from switches.models import Episode, Trip, TripPolicy
from switches.services.engage import engage
from switches.trips import escalations, history, notifications, resolution, texts
from switches.trips.history import TripContext

from .decision import TripDecision, decide
from .trip_requests import DEFAULT_EXPIRY, StopRequest, validate_request

MAX_MINUTES_WITHOUT_POLICY = 60
PERMISSION = "switches:trip"


@dataclass(frozen=True)
class TripResult:
    """The result of a trip request: whether it engaged the switch, why, and the stored trip."""

    tripped: bool
    why: str
    trip: Trip


def request_trip(
    *,
    switch: str,
    source: str,
    fingerprint: str,
    reason: str,
    evidence: Mapping[str, Any] | None = None,
    expires_in: str | None = None,
    actor: Actor,
    now: datetime,
) -> TripResult:
    """Engage `switch` (`experiment:ranking-v2`) if the policies allow it, in one transaction.

    Raise :class:`InvalidInput` for an invalid request, and :class:`Forbidden` if the actor may not
    engage the switch. A refusal by the policies is recorded and returned.
    """
    actor.require(PERMISSION)
    request = validate_request(switch, source, fingerprint, reason, evidence, expires_in)
    with transaction.atomic():
        history.lock_trips()
        authority.require(actor, Action.ENGAGE, request.switch)
        policy, context, decision = _decide(request, now)
        if decision.outcome == Trip.Outcome.TRIPPED:
            publication.lock()
            policy, context, decision = _decide(request, now)
        episode = context.episode if decision.outcome == Trip.Outcome.ENGAGED else None
        if decision.outcome == Trip.Outcome.TRIPPED:
            decision, episode = _engage_switch(request, policy, decision, actor, now)
        return _record(context.earlier, request, policy, decision, episode, actor, now)


def _decide(
    request: StopRequest, now: datetime
) -> tuple[TripPolicy | None, TripContext, TripDecision]:
    scope = request.switch.partition(":")[0]
    policy = history.deciding_policy(history.list_policies(), request.source, scope)
    context = history.read_context(
        switch=request.switch, fingerprint=request.fingerprint, policy=policy, now=now
    )
    decision = decide(
        switch=request.switch,
        source=request.source,
        policy=history.to_policy_row(policy) if policy else None,
        history=context.history,
        now=now,
    )
    return policy, context, decision


def record_refusal(
    *,
    switch: str,
    source: str,
    fingerprint: str,
    reason: str,
    evidence: Mapping[str, Any],
    why: str,
    escalate: str = "",
    actor: Actor,
    now: datetime,
) -> TripResult:
    """Record a refused trip request; `escalate` is the key of an escalation to people, if any."""
    actor.require(PERMISSION)
    request = StopRequest(switch, source, fingerprint, reason, dict(evidence), DEFAULT_EXPIRY)
    decision = TripDecision(Trip.Outcome.REFUSED, why, escalate)
    with transaction.atomic():
        history.lock_trips()
        context = history.read_context(switch=switch, fingerprint=fingerprint, policy=None, now=now)
        return _record(context.earlier, request, None, decision, None, actor, now)


def _engage_switch(
    request: StopRequest,
    policy: TripPolicy | None,
    decision: TripDecision,
    actor: Actor,
    now: datetime,
) -> tuple[TripDecision, Episode | None]:
    scope, _, key = request.switch.partition(":")
    longest = policy.longest_minutes if policy else MAX_MINUTES_WITHOUT_POLICY
    expires_in = texts.cap_expiry(request.expires_in, longest)
    try:
        with transaction.atomic():
            done = engage(
                scope=scope,
                key=key,
                reason=request.reason,
                expires_in=expires_in,
                evidence=request.evidence,
                permission=PERMISSION,
                actor=actor,
                now=now,
            )
    except Conflict as conflict:
        rule, why = conflict.extra.get("rule"), conflict.detail
        if rule is None:
            return TripDecision(Trip.Outcome.REFUSED, why), None
        why = f"A safety rule refuses it, and monitors can't override rules. {why}"
        escalate = f"rule:{rule}:{request.switch}"
        return TripDecision(Trip.Outcome.REFUSED, why, escalate=escalate), None
    except InvalidInput as error:
        return TripDecision(Trip.Outcome.REFUSED, f"It could not be engaged: {error.detail}"), None
    if expires_in != texts.cap_expiry(request.expires_in, texts.NO_CAP_MINUTES):
        requested = request.expires_in.strip()
        cap = f"Requested {requested}, limited to {expires_in} by the policy."
        decision = replace(decision, why=f"{decision.why} {cap}")
    return decision, done.episode


def _record(
    earlier: Trip | None,
    request: StopRequest,
    policy: TripPolicy | None,
    decision: TripDecision,
    episode: Episode | None,
    actor: Actor,
    now: datetime,
) -> TripResult:
    """Count the request as a repeat of `earlier`, or create, announce and audit a trip."""
    row = _count_repeat(earlier, request, decision, now)
    is_new = row is None
    if row is None:
        row = Trip.objects.create(
            switch=request.switch,
            source=request.source,
            fingerprint=request.fingerprint,
            reason=request.reason,
            evidence=request.evidence,
            policy=policy,
            outcome=decision.outcome,
            why=decision.why,
            at=now,
            by=actor.label,
            episode=episode,
            last_at=now,
        )
    if decision.escalate:
        escalations.ask_people(row, decision.escalate, new=is_new, now=now)
    elif is_new:
        notifications.announce(row, now)
    if is_new:  # Last, because it takes the audit lock.
        audit.record(
            actor=actor,
            action=f"trip.{notifications.ACTIONS[Trip.Outcome(row.outcome)]}",
            target=row.switch,
            reason=row.reason,
            after={
                "trip": row.pk,
                "source": row.source,
                "fingerprint": row.fingerprint,
                "outcome": row.outcome,
                "why": row.why,
                "policy": policy.trigger if policy else None,
                "episode": row.episode_id,
            },
            now=now,
        )
    return TripResult(decision.outcome == Trip.Outcome.TRIPPED, decision.why, row)


def _count_repeat(
    earlier: Trip | None, request: StopRequest, decision: TripDecision, now: datetime
) -> Trip | None:
    same_refusal = (
        earlier is not None
        and decision.outcome == earlier.outcome == Trip.Outcome.REFUSED
        and earlier.resolved_at is None
    )
    if earlier is None or not (decision.outcome == Trip.Outcome.DUPLICATE or same_refusal):
        return None
    earlier.repeats += 1
    earlier.last_at = max(earlier.last_at, now)
    earlier.resolved_at = None
    if same_refusal:
        earlier.why, earlier.evidence = decision.why, request.evidence
    earlier.save(update_fields=["repeats", "last_at", "resolved_at", "why", "evidence"])
    if not same_refusal:
        _keep_latest(earlier, request, decision, now)
    return earlier


def _keep_latest(first: Trip, request: StopRequest, decision: TripDecision, now: datetime) -> None:
    """Store a repeated request in the alert's one row for repeats, over the previous repeat."""
    fields = {
        "reason": request.reason,
        "evidence": request.evidence,
        "why": decision.why,
        "last_at": now,
        "resolved_at": None,
    }
    alert = {"switch": first.switch, "fingerprint": first.fingerprint}
    repeats = Trip.objects.filter(**alert, outcome=Trip.Outcome.DUPLICATE, pk__gt=first.pk)
    latest = repeats.order_by("-id").first()
    if latest is not None:
        Trip.objects.filter(pk=latest.pk).update(**fields)
        return
    Trip.objects.create(
        **alert,
        source=request.source,
        policy_id=first.policy_id,
        episode_id=first.episode_id,
        outcome=Trip.Outcome.DUPLICATE,
        by=first.by,
        at=now,
        **fields,
    )


def decide_open_requests(now: datetime) -> int:
    return trip_requests.decide_open(_decide_open_request, now)


def _decide_open_request(request: TripRequest, now: datetime) -> tuple[bool, str]:
    actor = system_actor(request.source)
    if request.is_over:
        return False, resolution.resolve_alert(
            switch=request.switch, fingerprint=request.fingerprint, actor=actor, now=now
        )
    result = request_trip(
        switch=request.switch,
        source=request.source,
        fingerprint=request.fingerprint,
        reason=request.reason,
        evidence=request.evidence,
        expires_in=request.expires_in,
        actor=actor,
        now=now,
    )
    return result.tripped, result.why
