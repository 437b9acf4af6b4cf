"""Changing the rules: an admin proposes, somebody else approves, and then it is so."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction

from controlplane.core import reasons
from controlplane.core.actors import Actor
from controlplane.core.approvals import services as approvals
from controlplane.core.approvals.models import Approval
from controlplane.core.audit import services as audit
from controlplane.core.errors import Conflict, Forbidden, InvalidInput, NotFound
from controlplane.core.roles import Role
from switches import facts, publication
from switches.models import Episode, OnExpiry, Rule
from switches.rules import guard, judge
from switches.rules.proposal import FIELDS, Proposal, checked
from switches.services import changes

Picture = dict[str, Any]


@dataclass(frozen=True)
class Proposed:
    """What was asked for: the rule as it was and as it is to be, and the approval it waits for."""

    before: Proposal | None
    after: Proposal | None
    approval: Approval


def propose(
    *,
    rule_id: int | None = None,
    asked: Picture | None,
    reason: str = "",
    actor: Actor,
    now: datetime,
) -> Proposed:
    """Ask for a new rule (no `rule_id`), another wording of one, or its end (`asked` is None).

    Raises :class:`Forbidden` unless an admin asks, :class:`InvalidInput`, :class:`NotFound`, or
    :class:`Conflict` while another change of the rule waits.
    """
    require_admin(actor)
    errors: dict[str, list[str]] = {}
    if reason and (problems := reasons.unreadable(reason, called="reason")):
        errors["reason"] = problems
    after = None
    try:
        after = checked(asked) if asked is not None else None
    except InvalidInput as error:
        errors.update(error.errors)
    if errors:
        raise InvalidInput(errors)
    with transaction.atomic():
        publication.lock()
        row = _row(rule_id) if rule_id is not None else None
        before = Proposal.of(row) if row else None
        if before == after:
            raise Conflict("The rule is like that already; nothing was asked for.")
        _require_free_name(after, row)
        approval = _ask(before, after, reason.strip(), actor, now)
        return Proposed(before, after, approval)


def require_admin(actor: Actor) -> None:
    """Rules are the admins' business: a signed-in one, or a token of one that may write."""
    actor.require("switches:write")
    if actor.type != "system" and actor.role != Role.ADMIN:
        raise Forbidden("Only an admin may propose a change of the safety rules.")


def _row(rule_id: int) -> Rule:
    row = Rule.objects.select_for_update().filter(pk=rule_id).first()
    if row is None:
        raise NotFound(f"There is no rule {rule_id}.")
    return row


def _require_free_name(after: Proposal | None, row: Rule | None) -> None:
    if after is None:
        return
    same = Rule.objects.filter(name__iexact=after.name)
    if (same.exclude(pk=row.pk) if row else same).exists():
        raise InvalidInput({"name": [f"There is a rule “{after.name}” already."]})


def _ask(
    before: Proposal | None, after: Proposal | None, reason: str, actor: Actor, now: datetime
) -> Approval:
    named = before or after
    assert named is not None  # noqa: S101 - they differ, so one of them is there
    return approvals.request(
        kind=Approval.Kind.RULE_CHANGE,
        target=f"rule:{named.name}",
        summary=_summary(before, after),
        diff=_diff(before, after),
        reason=reason,
        risk="high",
        actor=actor,
        now=now,
    )


def _diff(before: Proposal | None, after: Proposal | None) -> Picture:
    """Each field before and after; all of one side are null where there is no rule."""
    was, becomes = (one.as_dict() if one else dict.fromkeys(FIELDS) for one in (before, after))
    return {field: [was[field], becomes[field]] for field in FIELDS}


def _sides(diff: Picture) -> tuple[Picture | None, Picture | None]:
    """What :func:`_diff` was made of."""
    was = {field: diff[field][0] for field in FIELDS}
    becomes = {field: diff[field][1] for field in FIELDS}
    return (was if was["name"] else None), (becomes if becomes["name"] else None)


def _summary(before: Proposal | None, after: Proposal | None) -> str:
    if before is None:
        said = f"New rule “{after.name}”: {after.sentence}" if after else ""
    elif after is None:
        said = f"Remove the rule “{before.name}”: {before.sentence}"
    else:
        said = f"Change the rule “{before.name}”: {after.sentence}, instead of: {before.sentence}"
    return said if len(said) <= 300 else f"{said[:299]}…"


@approvals.carries_out(
    Approval.Kind.RULE_CHANGE, lock_first=publication.lock, check_reason=reasons.unreadable
)
def _carry_out(approval: Approval, actor: Actor, now: datetime) -> None:
    """Do what was approved, if the rule still is as it was when that was asked for."""
    publication.lock()
    before, after = _sides(approval.diff)
    row = None
    if before is not None:
        row = Rule.objects.select_for_update().filter(name=before["name"]).first()
        if row is None or Proposal.of(row).as_dict() != before:
            raise Conflict("The rule has changed since this was asked for; ask for it anew.")
    proposal = checked(after) if after is not None else None
    _require_free_name(proposal, row)
    action = _write(row, proposal, approval, now)
    if proposal is not None:
        hold_what_must_not_end_by_itself(now=now, actor=actor)
    audit.record(
        actor=actor,
        action=action,
        target=approval.target,
        reason=approval.reason,
        before=before,
        after=after,
        now=now,
    )


def _write(row: Rule | None, after: Proposal | None, approval: Approval, now: datetime) -> str:
    if row is None:
        assert after is not None  # noqa: S101 - a proposal says at least one of the two
        Rule.objects.create(
            **after.as_dict(), created_at=now, created_by=approval.requested_by, changed_at=now
        )
        return "rule.created"
    if after is None:
        row.delete()
        return "rule.removed"
    Rule.objects.filter(pk=row.pk).update(**after.as_dict(), changed_at=now)
    return "rule.changed"


def hold_what_must_not_end_by_itself(*, actor: Actor, now: datetime) -> int:
    """Have episodes hold at their expiry that, under the rules, must not end by themselves.

    A client that is cut off acts on the policy it was told, so each is published anew. In the
    caller's transaction; returns how many there were.
    """
    head = publication.lock()
    rules = guard.rules()
    may_end = Episode.objects.filter(ended_at__isnull=True).exclude(on_expiry=OnExpiry.HOLD)
    found = 0
    for episode in may_end.select_for_update().select_related("switch").order_by("switch_id"):
        rule = judge.holding(rules, episode.switch_id, episode.on_expiry)
        if rule is None:
            continue
        switch = episode.switch
        before = facts.picture(switch, episode)
        episode.on_expiry = OnExpiry.HOLD
        episode.save(update_fields=["on_expiry"])
        publication.publish(head, switch, now)
        said = f"The rule “{rule.name}” covers it now: at its expiry it is held."
        changes.tell("switch.held", switch, episode, actor, now, before=before, reason=said)
        found += 1
    return found
