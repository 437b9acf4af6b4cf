"""What a machine asks for, and what comes of it: every wish is kept with its evidence.

The machines' lock is taken first, so of any number of equal wishes one stops the switch and the
rest are repeats of it. The publication row, which people wait for, is locked only by a wish that is
about to stop something, and then it is decided once more.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db import transaction

from controlplane.core.actors import Actor
from controlplane.core.audit import services as audit
from controlplane.core.errors import Conflict, InvalidInput
from switches import publication
from switches.models import Episode, Trip, TripPolicy
from switches.services.engage import stop
from switches.trips import asking, history, locks, telling, words
from switches.trips.decide import Decision, decide
from switches.trips.history import Past
from switches.trips.wishes import USUAL_EXPIRY, Wish, checked

MAX_MINUTES_WITHOUT_POLICY = 60  # minutes; nothing is engaged then


@dataclass(frozen=True)
class Asked:
    """What came of a wish: whether it stopped the switch, why, and the row that keeps it."""

    tripped: bool
    why: str
    trip: Trip


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
    wish = checked(switch, source, fingerprint, reason, evidence, expires_in)
    with transaction.atomic():
        locks.machines()
        policy, past, decision = _judged(wish, now)
        if decision.outcome == Trip.Outcome.TRIPPED:
            publication.lock()
            policy, past, decision = _judged(wish, now)
        episode = past.episode if decision.outcome == Trip.Outcome.ENGAGED else None
        if decision.outcome == Trip.Outcome.TRIPPED:
            decision, episode = _stop(wish, policy, decision, actor, now)
        row = _repeated(past.earlier, past.episode, wish, decision, now)
        if row is None:
            row = _kept(wish, policy, decision, episode, actor, now)
            _note(row, decision, actor, now)
        elif decision.escalate:
            asking.ask(row, decision.escalate, new=False, now=now)
        return Asked(decision.outcome == Trip.Outcome.TRIPPED, decision.why, row)


def _judged(wish: Wish, now: datetime) -> tuple[TripPolicy | None, Past, Decision]:
    scope = wish.switch.partition(":")[0]
    policy = history.deciding(history.policies(), wish.source, scope)
    past = history.past(switch=wish.switch, fingerprint=wish.fingerprint, policy=policy, now=now)
    decision = decide(
        switch=wish.switch,
        source=wish.source,
        policy=history.plain(policy) if policy else None,
        history=past.history,
        now=now,
    )
    return policy, past, decision


def refuse(
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
) -> Asked:
    """Keep a wish that can't be followed, for nobody looks at what a webhook is answered.

    `escalate` names what a person is asked about it, once for that name.
    """
    actor.require("switches:trip")
    wish = Wish(switch, source, fingerprint, reason, dict(evidence), USUAL_EXPIRY)
    decision = Decision(Trip.Outcome.REFUSED, why, escalate)
    with transaction.atomic():
        locks.machines()
        past = history.past(switch=switch, fingerprint=fingerprint, policy=None, now=now)
        row = _repeated(past.earlier, None, wish, decision, now)
        if row is None:
            row = _kept(wish, None, decision, None, actor, now)
            _note(row, decision, actor, now)
        elif escalate:
            asking.ask(row, escalate, new=False, now=now)
        return Asked(False, why, row)


def _stop(
    wish: Wish, policy: TripPolicy | None, decision: Decision, actor: Actor, now: datetime
) -> tuple[Decision, Episode | None]:
    """Engage; whatever refuses that becomes an answer, and leaves no trace of the attempt."""
    scope, _, key = wish.switch.partition(":")
    longest = policy.longest_minutes if policy else MAX_MINUTES_WITHOUT_POLICY
    expires_in = words.expiry(wish.expires_in, longest)
    try:
        with transaction.atomic():
            done = stop(
                scope=scope,
                key=key,
                reason=wish.reason,
                expires_in=expires_in,
                evidence=wish.evidence,
                actor=actor,
                now=now,
            )
    except Conflict as conflict:
        return _refused_by(conflict, wish.switch), None
    except InvalidInput as error:
        return Decision(Trip.Outcome.REFUSED, f"It could not be engaged: {error.detail}"), None
    if expires_in != words.expiry(wish.expires_in, words.NO_CAP):
        asked = (
            f"It asked for {wish.expires_in.strip()} and gets {expires_in}, the policy's longest."
        )
        decision = replace(decision, why=f"{decision.why} {asked}")
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
    earlier: Trip | None, episode: Episode | None, wish: Wish, decision: Decision, now: datetime
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


def _keep_latest(first: Trip, wish: Wish, decision: Decision, now: datetime) -> None:
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
    wish: Wish,
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


def _note(row: Trip, decision: Decision, actor: Actor, now: datetime) -> None:
    """Tell first: the audit lock is the last that is taken."""
    if decision.escalate:
        asking.ask(row, decision.escalate, new=True, now=now)
    else:
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
