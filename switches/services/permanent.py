"""Keeping a switch engaged with no expiry: asked for by one person, approved by another."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.utils import timezone

from controlplane.core import reasons
from controlplane.core.actors import Actor
from controlplane.core.approvals import services as approvals
from controlplane.core.approvals.models import Approval
from controlplane.core.errors import Conflict
from controlplane.core.escalation import services as escalation
from switches import facts, publication, risk
from switches.expiry import RECONFIRM_EVERY
from switches.models import Episode, State, Switch
from switches.rules import glass
from switches.scopes import GLOBAL_ID
from switches.services import changes


def ask(switch: Switch, episode: Episode, reason: str, actor: Actor, now: datetime) -> Approval:
    return approvals.request(
        kind=Approval.Kind.PERMANENT,
        target=switch.pk,
        summary=f"Keep {switch.pk} engaged with no expiry",
        diff={"episode": episode.pk, "permanent": [False, True]},
        reason=reason,
        facts=risk.facts(switch.pk, now, for_good=True),
        actor=actor,
        now=now,
    )


def _in_words(approvals: Sequence[Approval]) -> list[dict[str, Any]]:
    numbers = [approval.diff.get("episode") for approval in approvals]
    ends = dict(Episode.objects.filter(pk__in=numbers).values_list("pk", "expires_at"))
    return [{"expires": [_told(ends.get(number)), "never"]} for number in numbers]


def _told(at: datetime | None) -> str:
    return f"{timezone.localtime(at):%-d %b %Y %H:%M %Z}" if at else "at its end"


@approvals.carries_out(
    Approval.Kind.PERMANENT,
    lock_first=publication.lock,
    check_reason=reasons.problems_with,
    reaches_far=lambda approval: approval.target == GLOBAL_ID,
    in_words=_in_words,
)
def _make_permanent(approval: Approval, actor: Actor, now: datetime) -> None:
    head = publication.lock()
    switch = Switch.objects.select_for_update().get(pk=approval.target)
    episode = changes.open_episode(switch)
    if episode is None or episode.pk != approval.diff["episode"]:
        raise Conflict(f"{switch.pk} is no longer in the episode this was asked for.")
    if episode.state != State.ENGAGED:
        raise Conflict(f"{switch.pk} is {episode.state.value}; only an engaged switch can stay.")
    if rules := glass.still_against(episode):
        raise Conflict(f"{switch.pk}: {glass.short(rules)}")
    before = facts.picture(switch, episode)
    episode.permanent, episode.expires_at, episode.overdue_at = True, None, None
    episode.acknowledged_at, episode.acknowledged_by = None, ""
    episode.reconfirm_due_at = now + RECONFIRM_EVERY
    episode.save(
        update_fields=[
            *("permanent", "expires_at", "overdue_at", "reconfirm_due_at"),
            *("acknowledged_at", "acknowledged_by"),
        ]
    )
    publication.publish(head, switch, now)
    escalation.close(subject=changes.subject(episode), now=now)
    changes.tell(
        "switch.extended", switch, episode, actor, now, before=before, reason=approval.reason
    )
