"""Permanent episodes, which have no expiry: requested by one person, approved by another."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.utils import timezone

from controlplane.core import reasons
from controlplane.core.actors import Actor
from controlplane.core.approvals import services as approvals
from controlplane.core.approvals.models import Approval
from controlplane.core.errors import Conflict
from controlplane.core.escalations import services as escalation
from switches import publication
from switches.blast import risk_facts
from switches.episodes import changes
from switches.expiry import RECONFIRM_EVERY
from switches.models import Episode, Switch, SwitchState
from switches.rules import break_glass
from switches.scopes import GLOBAL_ID

from .registration import lock_approved


def request_permanent(
    switch: Switch, episode: Episode, reason: str, actor: Actor, now: datetime
) -> Approval:
    return approvals.request_approval(
        kind=Approval.Kind.PERMANENT,
        target=switch.pk,
        summary=f"Keep {switch.pk} engaged with no expiry",
        diff={"episode": episode.pk, "permanent": [False, True]},
        reason=reason,
        facts=risk_facts(switch.pk, now, for_good=True),
        actor=actor,
        now=now,
    )


def _describe_changes(approvals: Sequence[Approval]) -> list[dict[str, Any]]:
    numbers = [approval.diff.get("episode") for approval in approvals]
    ends = dict(Episode.objects.filter(pk__in=numbers).values_list("pk", "expires_at"))
    present = [
        f"{timezone.localtime(at):%-d %b %Y %H:%M %Z}" if at else "at its end"
        for at in map(ends.get, numbers)
    ]
    return [{"expires": [expires, "never"]} for expires in present]


@approvals.on_approval(
    Approval.Kind.PERMANENT,
    lock_first=publication.lock_with_teams,
    check_reason=reasons.find_reason_problems,
    requires_confirmation=lambda approval: approval.target == GLOBAL_ID,
    describe_changes=_describe_changes,
)
def _make_permanent(approval: Approval, actor: Actor, now: datetime) -> None:
    head = publication.lock()
    switch, episode = lock_approved(approval)
    if episode.state != SwitchState.ENGAGED:
        raise Conflict(
            f"{switch.pk} is {episode.state.value}; only an engaged switch can stay engaged."
        )
    if rules := break_glass.violated_rules(episode):
        raise Conflict(f"{switch.pk}: {break_glass.describe_limit(rules)}")
    before = changes.audit_state(switch, episode)
    fields = {
        "permanent": True,
        "expires_at": None,
        "overdue_at": None,
        **changes.NOT_ACKNOWLEDGED,
        "reconfirm_due_at": now + RECONFIRM_EVERY,
    }
    changes.update_episode(episode, fields)
    publication.publish(head, switch, now)
    escalation.close(subject=changes.episode_subject(episode), now=now)
    changes.record_change(
        "switch.extended", switch, episode, actor, now, before=before, reason=approval.reason
    )
