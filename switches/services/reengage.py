"""Engage of a ramping switch: its ramp ends and its episode continues."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from types import MappingProxyType
from typing import Any

from controlplane.core import authority
from controlplane.core.actions import Action
from controlplane.core.actors import Actor
from controlplane.core.escalations import services as escalation
from switches import publication
from switches.episodes import changes
from switches.expiry import Expiry
from switches.models import Episode, OnExpiry, Publication, Switch
from switches.ramps import live_ramps
from switches.rules import break_glass, guard

from . import permanent_approval
from .engagement import Engagement, engagement_fields, shorten_for_override

HELD_NOTICE = (
    "It stays engaged at its expiry, because releasing {} earlier than before requires {}."
)


def reengage(
    head: Publication,
    switch: Switch,
    episode: Episode,
    reason: str,
    expiry: Expiry,
    evidence: Mapping[str, Any] | None,
    actor: Actor,
    now: datetime,
    *,
    keeps_expiry: bool = False,
    more: Mapping[str, Any] = MappingProxyType({}),
) -> Engagement:
    """Engage a ramping switch again with a new reason, expiry and actor.

    Safety rules don't apply because the switch already counts as engaged; an earlier override still
    limits the duration, unless `keeps_expiry`. An expiry that would release the switch sooner than
    before becomes `hold`, and the result's `notice` says so, if a release needs two people or the
    actor may not release it. `more` is added to the audit row and the messages.
    """
    before = changes.audit_state(switch, episode)
    escalation.close(subject=changes.episode_subject(episode), now=now)
    outcome = f"{actor.label} engaged the switch again: {reason.strip()}"
    ramp = live_ramps.supersede(switch, outcome, actor, now)
    rules = break_glass.violated_rules(episode)
    requested = expiry
    if rules and not keeps_expiry:
        expiry = shorten_for_override(expiry, now)
    missing = _find_missing_consent(switch, episode, expiry, actor)
    if missing:
        expiry = replace(expiry, on_expiry=OnExpiry.HOLD.value)
    # The salt stays, so that a new ramp admits the same keys.
    fields = {
        **engagement_fields(reason, evidence, expiry, actor, now),
        # A clock that was set back must not prevent an engage.
        "engaged_at": min(episode.engaged_at, now),
        "permanent": False,
        "allow_percent": 0,
        "overdue_at": None,
        **changes.NOT_ACKNOWLEDGED,
        "reconfirm_due_at": None,
    }
    changes.update_episode(episode, fields)
    publication.publish(head, switch, now)
    live_ramps.void_requests(switch, "The switch was engaged again.", actor, now)
    changes.record_change(
        "switch.engaged",
        switch,
        episode,
        actor,
        now,
        before=before,
        reason=episode.reason,
        more={**more, "ramp": ramp.pk} if ramp is not None else more,
    )
    if rules:
        override_entry = break_glass.override_record(episode.reason, rules, "engage", actor)
        review = break_glass.notify_break_glass(switch, episode, override_entry, actor, now)
        notice = break_glass.describe_limit(rules) if expiry.is_shorter_than(requested) else ""
        return Engagement(switch, episode, review=review, notice=notice)
    notice = HELD_NOTICE.format(switch.pk, missing) if missing else ""
    if not expiry.permanent_requested:
        return Engagement(switch, episode, notice=notice)
    approval = permanent_approval.request_permanent(switch, episode, episode.reason, actor, now)
    return Engagement(switch, episode, approval, notice=notice)


def _find_missing_consent(switch: Switch, episode: Episode, expiry: Expiry, actor: Actor) -> str:
    """Return whose consent is missing if `expiry` would release the switch sooner than before.

    Otherwise one person could start a ramp and engage again with a short expiry, and people could
    release what another team owns. The teams are not locked: an engage must not wait.
    """
    if expiry.on_expiry == OnExpiry.HOLD:
        return ""
    if not authority.read_teams().decide(actor, Action.RELEASE, switch.pk).is_allowed:
        missing = "its owner"
    elif expiry.on_expiry == OnExpiry.RELEASE and guard.needs_second_person(switch, at_once=True):
        missing = "a second person"
    else:
        return ""
    is_due = episode.on_expiry in {expiry.on_expiry, OnExpiry.RELEASE}
    is_sooner = not is_due or episode.expires_at is None or expiry.expires_at < episode.expires_at
    return missing if is_sooner else ""
