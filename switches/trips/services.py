"""What a machine asks for, and what comes of it: every wish is kept with its evidence.

The publication row is locked first, so of any number of equal wishes one stops the switch and the
rest are repeats of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction

from controlplane.core import durations
from controlplane.core.actors import Actor
from controlplane.core.audit import services as audit
from controlplane.core.errors import Conflict, InvalidInput
from switches import publication, reasons
from switches.models import Episode, Trip, TripPolicy
from switches.services.engage import stop
from switches.services.register import identify
from switches.trips import history, telling, words
from switches.trips.decide import Decision, decide

LONGEST = {"source": 120, "fingerprint": 200}
LONGEST_REASON = 20_000  # characters as sent; what is kept of it is shortened
USUAL_EXPIRY = "1h"
LONGEST_WITHOUT_POLICY = 60  # minutes; nothing is engaged then


@dataclass(frozen=True)
class Asked:
    """What came of a wish: whether it stopped the switch, why, and the row that keeps it."""

    tripped: bool
    why: str
    trip: Trip


@dataclass(frozen=True)
class _Wish:
    switch: str
    source: str
    fingerprint: str
    reason: str
    evidence: dict[str, Any]
    expires_in: str


def trip(
    *,
    switch: str,
    source: str,
    fingerprint: str,
    reason: str,
    evidence: Mapping[str, Any] | None = None,
    expires_in: str | None = None,
    actor: Actor,
    now: datetime,
) -> Asked:
    """Stop `switch` (`experiment:ranking-v2`) if the policies allow it, in one transaction.

    Raises :class:`InvalidInput` for what can't be read; whatever else stands in the way is an
    answer, and kept.
    """
    actor.require("switches:trip")
    wish = _checked(switch, source, fingerprint, reason, evidence, expires_in)
    with transaction.atomic():
        publication.lock()
        scope = switch.partition(":")[0]
        policy = history.deciding(history.policies(), wish.source, scope)
        past = history.past(
            switch=wish.switch, fingerprint=wish.fingerprint, policy=policy, now=now
        )
        decision = decide(
            switch=wish.switch,
            source=wish.source,
            policy=history.plain(policy) if policy else None,
            history=past.history,
            now=now,
        )
        episode = past.episode if decision.outcome == Trip.Outcome.ENGAGED else None
        if decision.outcome == Trip.Outcome.TRIPPED:
            decision, episode = _stop(wish, policy, decision, actor, now)
        row = _repeated(past.earlier, past.episode, wish, decision, now)
        if row is None:
            row = _kept(wish, policy, decision, episode, actor, now)
            _note(row, actor, now)
        if decision.escalate and not history.told_lately(decision.escalate, now):
            telling.escalate(row, decision.escalate, now)
        return Asked(decision.outcome == Trip.Outcome.TRIPPED, decision.why, row)


def refuse(
    *,
    switch: str,
    source: str,
    fingerprint: str,
    reason: str,
    evidence: Mapping[str, Any],
    why: str,
    actor: Actor,
    now: datetime,
) -> Asked:
    """Keep a wish that can't be read, for nobody looks at what a webhook is answered."""
    actor.require("switches:trip")
    wish = _Wish(switch, source, fingerprint, reason, dict(evidence), USUAL_EXPIRY)
    decision = Decision(Trip.Outcome.REFUSED, why)
    with transaction.atomic():
        publication.lock()
        past = history.past(switch=switch, fingerprint=fingerprint, policy=None, now=now)
        row = _repeated(past.earlier, None, wish, decision, now)
        if row is None:
            row = _kept(wish, None, decision, None, actor, now)
            _note(row, actor, now)
        return Asked(False, why, row)


def _checked(
    switch: str,
    source: str,
    fingerprint: str,
    reason: str,
    evidence: Mapping[str, Any] | None,
    expires_in: str | None,
) -> _Wish:
    errors: dict[str, list[str]] = {}
    try:
        identify(*switch.partition(":")[::2])
    except InvalidInput as error:
        errors["switch"] = [
            text for texts in error.errors.values() for text in texts
        ]  # its scope's and its key's
    for name, text in (("source", source), ("fingerprint", fingerprint)):
        if not words.readable(text):
            errors[name] = ["Must not be empty."]
        elif len(text) > LONGEST[name]:
            errors[name] = [f"At most {LONGEST[name]} characters."]
    if not words.readable(reason) or not reasons.columns(reason):
        errors["reason"] = [f"A reason is required. {reasons.STOP_ADVICE}"]
    elif len(reason) > LONGEST_REASON:
        errors["reason"] = [f"At most {LONGEST_REASON:,} characters; put the rest in the evidence."]
    if evidence is not None and words.size(evidence) > words.LARGEST_EVIDENCE:
        errors["evidence"] = [f"At most {words.LARGEST_EVIDENCE // 1024} KiB; link to the rest."]
    try:
        words.expiry(expires_in or USUAL_EXPIRY, durations.LONGEST.days * 24 * 60)
    except ValueError as error:
        errors["expires_in"] = [str(error)]
    if errors:
        raise InvalidInput(errors)
    source, fingerprint = words.readable(source), words.readable(fingerprint)
    told = words.reason(reason, source=source, fingerprint=fingerprint)
    return _Wish(
        switch, source, fingerprint, told, dict(evidence or {}), expires_in or USUAL_EXPIRY
    )


def _stop(
    wish: _Wish, policy: TripPolicy | None, decision: Decision, actor: Actor, now: datetime
) -> tuple[Decision, Episode | None]:
    """Engage; whatever refuses that becomes an answer, and leaves no trace of the attempt."""
    scope, _, key = wish.switch.partition(":")
    longest = policy.longest_minutes if policy else LONGEST_WITHOUT_POLICY
    try:
        with transaction.atomic():
            done = stop(
                scope=scope,
                key=key,
                reason=wish.reason,
                expires_in=words.expiry(wish.expires_in, longest),
                evidence=wish.evidence,
                actor=actor,
                now=now,
            )
    except Conflict as conflict:
        return _refused_by(conflict, wish.switch), None
    except InvalidInput as error:
        return Decision(Trip.Outcome.REFUSED, f"It could not be engaged: {error.detail}"), None
    return decision, done.episode


def _refused_by(conflict: Conflict, switch: str) -> Decision:
    """A machine never breaks the glass: a safety rule in its way is for a person to judge."""
    rule = conflict.extra.get("rule")
    if rule is None:
        return Decision(Trip.Outcome.REFUSED, conflict.detail)
    return Decision(
        Trip.Outcome.REFUSED,
        f"A safety rule is in the way, and a machine never breaks the glass. {conflict.detail}",
        escalate=f"rule:{rule}:{switch}",
    )


def _repeated(
    earlier: Trip | None, episode: Episode | None, wish: _Wish, decision: Decision, now: datetime
) -> Trip | None:
    """Count the repeat with the row it repeats, and keep its evidence; None if it is no repeat."""
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
        earlier.why, earlier.evidence = decision.why, wish.evidence
    earlier.save(update_fields=["repeats", "last_at", "resolved_at", "why", "evidence"])
    if not same_refusal:
        _keep_latest(earlier, wish, decision, now)
    return earlier


def _keep_latest(first: Trip, wish: _Wish, decision: Decision, now: datetime) -> None:
    """One row beside the first has the latest evidence, however often an alert repeats."""
    fields = {
        "reason": wish.reason,
        "evidence": wish.evidence,
        "why": decision.why,
        "last_at": now,
        "resolved_at": None,
    }
    same = Trip.objects.filter(
        switch=first.switch,
        fingerprint=first.fingerprint,
        outcome=Trip.Outcome.DUPLICATE,
        pk__gt=first.pk,
    )
    latest = same.order_by("-id").first()
    if latest is None:
        Trip.objects.create(
            switch=first.switch,
            source=wish.source,
            fingerprint=first.fingerprint,
            policy_id=first.policy_id,
            episode_id=first.episode_id,
            outcome=Trip.Outcome.DUPLICATE,
            by=first.by,
            at=now,
            **fields,
        )
    else:
        Trip.objects.filter(pk=latest.pk).update(**fields)


def _kept(
    wish: _Wish,
    policy: TripPolicy | None,
    decision: Decision,
    episode: Episode | None,
    actor: Actor,
    now: datetime,
) -> Trip:
    return Trip.objects.create(
        switch=wish.switch,
        source=wish.source,
        fingerprint=wish.fingerprint,
        reason=wish.reason,
        evidence=wish.evidence,
        policy=policy,
        outcome=decision.outcome,
        why=decision.why,
        at=now,
        by=actor.label,
        episode=episode,
        last_at=now,
    )


def _note(row: Trip, actor: Actor, now: datetime) -> None:
    """Announce first: the audit lock is the last that is taken."""
    telling.announce(row, now)
    audit.record(
        actor=actor,
        action=f"trip.{telling.ACTIONS[Trip.Outcome(row.outcome)]}",
        target=row.switch,
        reason=row.reason,
        after={
            "trip": row.pk,
            "source": row.source,
            "fingerprint": row.fingerprint,
            "outcome": row.outcome,
            "why": row.why,
            "policy": row.policy.trigger if row.policy else None,
            "episode": row.episode_id,
        },
        now=now,
    )
