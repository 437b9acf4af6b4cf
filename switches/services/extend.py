"""Functions that extend and acknowledge an engaged switch."""

from datetime import datetime

from django.db import transaction

from controlplane.core import authority, reasons
from controlplane.core.actions import Action
from controlplane.core.actors import Actor
from controlplane.core.ended_sessions import retry_if_ended
from controlplane.core.errors import Conflict, InvalidInput
from controlplane.core.escalations import services as escalation
from controlplane.core.json_values import require_readable
from switches import publication, reminders
from switches.episodes import changes
from switches.expiry import plan_extension
from switches.models import SwitchState
from switches.rules import break_glass
from switches.services import permanent_approval
from switches.services.engagement import Engagement

from .registration import identify, lock_engaged


@retry_if_ended
def extend(
    *, scope: str, key: str, expires_in: str, reason: str, actor: Actor, now: datetime
) -> Engagement:
    """Move the expiry to `now + expires_in`; the value `permanent` requests an approval instead.

    While an overridden safety rule would still refuse the switch, the extension is limited to 4
    hours and announced. Raise :class:`InvalidInput`, or :class:`Conflict` for a switch that is
    released, ramping or permanent.
    """
    actor.require("switches:write")
    identify(scope, key)
    if problems := reasons.find_reason_problems(reason):
        raise InvalidInput({"reason": problems})
    with transaction.atomic():
        head = publication.lock()
        refusal = f"{scope}:{key} is not engaged, so there is nothing to extend."
        switch, episode = lock_engaged(scope, key, refusal)
        authority.require(actor, Action.EXTEND, switch.pk)
        if episode.state != SwitchState.ENGAGED:
            raise Conflict(
                f"{switch.pk} is ramping, so its expiry has no effect. To extend it, abort the ramp"
                " or engage it again."
            )
        if episode.permanent:
            raise Conflict(f"{switch.pk} is permanent and has no expiry. Re-confirm it instead.")
        rules = break_glass.violated_rules(episode)
        if expires_in == "permanent":
            if rules:
                raise Conflict(f"{switch.pk}: {break_glass.describe_limit(rules)}")
            approval = permanent_approval.request_permanent(
                switch, episode, reason.strip(), actor, now
            )
            return Engagement(switch, episode, approval)
        requested = plan_extension(expires_in=expires_in, present=episode.expires_at, now=now)
        latest = now + break_glass.MAX_DURATION if rules else requested
        expires_at, limit = min(requested, latest), break_glass.describe_limit(rules)
        if rules and episode.expires_at is not None and expires_at <= episode.expires_at:
            raise InvalidInput({"expires_in": [f"{limit} It already lasts that long."]})
        before = changes.audit_state(switch, episode)
        fields = {
            "expires_at": expires_at,
            "overdue_at": None,
            **changes.NOT_ACKNOWLEDGED,
            **reminders.skipped_reminders(expires_at, now),
        }
        changes.update_episode(episode, fields)
        publication.publish(head, switch, now)
        escalation.close(subject=changes.episode_subject(episode), now=now)
        changes.record_change(
            "switch.extended", switch, episode, actor, now, before=before, reason=reason.strip()
        )
        if rules:
            override_entry = break_glass.override_record(reason.strip(), rules, "extend", actor)
            break_glass.notify_break_glass(switch, episode, override_entry, actor, now)
        return Engagement(switch, episode, notice=limit if expires_at < requested else "")


@retry_if_ended
def acknowledge(
    *, scope: str, key: str, comment: str = "", actor: Actor, now: datetime
) -> Engagement:
    """Acknowledge that the switch is engaged or overdue; nothing is published.

    The escalation pauses for 24 hours and then reminds daily. A switch that becomes overdue later
    gets a new escalation.
    """
    actor.require("switches:write")
    identify(scope, key)
    require_readable(comment=comment)
    with transaction.atomic():
        publication.lock()
        refusal = f"{scope}:{key} is released, so there is nothing to acknowledge."
        switch, episode = lock_engaged(scope, key, refusal)
        authority.require(actor, Action.EXTEND, switch.pk)
        before = changes.audit_state(switch, episode)
        fields = {"acknowledged_at": now, "acknowledged_by": actor.label}
        changes.update_episode(episode, fields)
        escalation.acknowledge(subject=changes.episode_subject(episode), actor=actor, now=now)
        changes.record_change(
            "episode.acknowledged",
            switch,
            episode,
            actor,
            now,
            before=before,
            reason=comment.strip(),
        )
        return Engagement(switch, episode)
