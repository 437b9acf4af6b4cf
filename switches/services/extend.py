"""Services that extend and acknowledge an engaged switch."""

from collections.abc import Sequence
from datetime import datetime

from django.db import transaction

from controlplane.core import reasons
from controlplane.core.actors import Actor
from controlplane.core.ended_sessions import retry_if_ended
from controlplane.core.errors import Conflict, InvalidInput
from controlplane.core.escalations import services as escalation
from controlplane.core.json_values import require_readable
from switches import publication, reminders
from switches.episodes import changes, serialization
from switches.expiry import plan_extension
from switches.models import Episode, SwitchState
from switches.rules import break_glass
from switches.services import permanent_approval
from switches.services.engagement import Engagement

from .registration import identify, lock_switch


@retry_if_ended
def extend(
    *, scope: str, key: str, expires_in: str, reason: str, actor: Actor, now: datetime
) -> Engagement:
    """Move the expiry to `now + expires_in`; the value `permanent` requests an approval instead.

    While an overridden rule would still refuse the switch, the extension is limited to 4 hours
    and announced. Raise :class:`InvalidInput`, or :class:`Conflict` if the switch is not
    engaged or is ramping.
    """
    actor.require("switches:write")
    identify(scope, key)
    if problems := reasons.find_reason_problems(reason):
        raise InvalidInput({"reason": problems})
    with transaction.atomic():
        head = publication.lock()
        switch = lock_switch(scope, key)
        episode = changes.lock_open_episode(switch) if switch is not None else None
        if switch is None or episode is None:
            raise Conflict(f"{scope}:{key} is not engaged; there is nothing to extend.")
        if episode.state != SwitchState.ENGAGED:
            raise Conflict(
                f"{switch.pk} is ramping, and its expiry decides nothing meanwhile. Abort the ramp "
                "to extend it, or engage it again."
            )
        if episode.permanent:
            raise Conflict(
                f"{switch.pk} is permanent: it has no expiry to extend; re-confirm it instead."
            )
        rules = break_glass.violated_rules(episode)
        if expires_in == "permanent":
            if rules:
                raise Conflict(f"{switch.pk}: {break_glass.describe_limit(rules)}")
            approval = permanent_approval.request_permanent(
                switch, episode, reason.strip(), actor, now
            )
            return Engagement(switch, episode, approval)
        requested = plan_extension(expires_in=expires_in, present=episode.expires_at, now=now)
        expires_at = _limit_expiry(episode, requested, rules, now) if rules else requested
        before = serialization.audit_state(switch, episode)
        _set_expiry(episode, expires_at, now)
        publication.publish(head, switch, now)
        escalation.close(subject=changes.episode_subject(episode), now=now)
        entry = changes.record_change(
            "switch.extended", switch, episode, actor, now, before=before, reason=reason.strip()
        )
        if rules:
            override_entry = break_glass.override_record(reason.strip(), rules, "extend", actor)
            break_glass.notify_break_glass(switch, episode, override_entry, entry, actor, now)
        return Engagement(
            switch,
            episode,
            notice=break_glass.describe_limit(rules) if expires_at < requested else "",
        )


@retry_if_ended
def acknowledge(
    *, scope: str, key: str, comment: str = "", actor: Actor, now: datetime
) -> Engagement:
    """Acknowledge that the switch is engaged or overdue; nothing is published.

    The escalation pauses for 24 hours, then sends daily reminders. If the switch becomes
    overdue later, a new escalation opens.
    """
    actor.require("switches:write")
    identify(scope, key)
    require_readable(comment=comment)
    with transaction.atomic():
        publication.lock()
        switch = lock_switch(scope, key)
        episode = changes.lock_open_episode(switch) if switch is not None else None
        if switch is None or episode is None:
            raise Conflict(f"{scope}:{key} is released; there is nothing to acknowledge.")
        before = serialization.audit_state(switch, episode)
        episode.acknowledged_at, episode.acknowledged_by = now, actor.label
        episode.save(update_fields=["acknowledged_at", "acknowledged_by"])
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


def _limit_expiry(
    episode: Episode, requested: datetime, rules: Sequence[str], now: datetime
) -> datetime:
    """Return the requested expiry, limited to 4 hours from now.

    Raise :class:`InvalidInput` if the result is no later than the present expiry.
    """
    expires_at = min(requested, now + break_glass.MAX_DURATION)
    if episode.expires_at is not None and expires_at <= episode.expires_at:
        raise InvalidInput(
            {"expires_in": [f"{break_glass.describe_limit(rules)} It lasts that long already."]}
        )
    return expires_at


def _set_expiry(episode: Episode, expires_at: datetime, now: datetime) -> None:
    episode.expires_at, episode.overdue_at = expires_at, None
    episode.acknowledged_at, episode.acknowledged_by = None, ""
    for field, reminded_for in reminders.skipped_reminders(expires_at, now).items():
        setattr(episode, field, reminded_for)
    episode.save(
        update_fields=[
            *("expires_at", "overdue_at", "acknowledged_at", "acknowledged_by"),
            *("day_reminder_for", "hour_reminder_for"),
        ]
    )
