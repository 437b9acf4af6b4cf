"""Engaging a switch that ramps: the ramp is over, the episode goes on, nothing flows any more."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from controlplane.core.actors import Actor
from controlplane.core.approvals import services as approvals
from controlplane.core.approvals.models import Approval
from controlplane.core.escalation import services as escalation
from switches import facts, publication, reminders
from switches.expiry import Expiry
from switches.models import Episode, OnExpiry, Publication, Switch
from switches.ramps import live_ramps
from switches.rules import glass
from switches.services import changes, permanent
from switches.services.engagement import Engagement, shortened
from switches.services.release import needs_second_person

HELD = "It is held at its expiry: to release {} then, sooner than before, takes a second person."


def engage(
    head: Publication,
    switch: Switch,
    episode: Episode,
    reason: str,
    expiry: Expiry,
    evidence: Mapping[str, Any] | None,
    actor: Actor,
    now: datetime,
) -> Engagement:
    """Stop it again, with a new reason and expiry; whoever asks is who engaged it now.

    It always may: what was engaged stays engaged, so no safety rule has a say. One that began
    against a rule is as short as it began. Where an immediate release takes two people, an expiry
    that would release sooner than before holds instead, which `notice` says.
    """
    before = facts.picture(switch, episode)
    escalation.close(subject=changes.subject(episode), now=now)
    outcome = f"{actor.label} engaged the switch again: {reason.strip()}"
    ramp = live_ramps.supersede(switch, outcome, actor, now)
    rules = glass.still_against(episode)
    asked, expiry = expiry, shortened(expiry, now) if rules else expiry
    is_sooner = _releases_sooner(switch, episode, expiry)
    if is_sooner:
        expiry = replace(expiry, on_expiry=OnExpiry.HOLD.value)
    _rewrite(episode, reason, expiry, evidence, actor, now)
    publication.publish(head, switch, now)
    for kind in (Approval.Kind.RELEASE, Approval.Kind.PERMANENT):
        why = "The switch was engaged again."
        approvals.void(kind=kind, target=switch.pk, actor=actor, now=now, why=why)
    entry = changes.tell(
        "switch.engaged",
        switch,
        episode,
        actor,
        now,
        before=before,
        reason=episode.reason,
        more={"ramp": ramp.pk} if ramp is not None else {},
    )
    if rules:
        broken = glass.told(episode.reason, rules, "engage", actor)
        review = glass.shout(switch, episode, broken, entry, actor, now)
        notice = glass.short(rules) if expiry.is_shorter_than(asked) else ""
        return Engagement(switch, episode, review=review, notice=notice)
    notice = HELD.format(switch.pk) if is_sooner else ""
    if not expiry.permanent_requested:
        return Engagement(switch, episode, notice=notice)
    wanted = permanent.ask(switch, episode, episode.reason, actor, now)
    return Engagement(switch, episode, wanted, notice=notice)


def _releases_sooner(switch: Switch, episode: Episode, expiry: Expiry) -> bool:
    """Return True if `expiry` would release the switch sooner than before, without a second person.

    A short ramp followed by such an engagement would be an immediate release.
    """
    if expiry.on_expiry != OnExpiry.RELEASE or not needs_second_person(switch, at_once=True):
        return False
    until = episode.expires_at if episode.on_expiry == OnExpiry.RELEASE else None
    return until is None or expiry.expires_at < until


def _rewrite(
    episode: Episode,
    reason: str,
    expiry: Expiry,
    evidence: Mapping[str, Any] | None,
    actor: Actor,
    now: datetime,
) -> None:
    """The salt stays: whoever was in at a share is in again when it comes back to that."""
    changed: dict[str, Any] = {
        "reason": reason.strip(),
        "evidence": dict(evidence) if evidence is not None else None,
        "engaged_by_type": actor.type,
        "engaged_by_name": actor.name,
        "engaged_by_id": actor.user_id,
        "engaged_by_identity": actor.identity,
        # A clock that was set back must not keep anybody from stopping it.
        "engaged_at": min(episode.engaged_at, now),
        "expires_at": expiry.expires_at,
        "permanent": False,
        "on_expiry": expiry.on_expiry,
        "allow_percent": 0,
        "overdue_at": None,
        "acknowledged_at": None,
        "acknowledged_by": "",
        "reconfirm_due_at": None,
        **reminders.spared(expiry.expires_at, now),
    }
    for field, value in changed.items():
        setattr(episode, field, value)
    episode.save(update_fields=list(changed))
