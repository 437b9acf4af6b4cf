"""Functions that change safety rules: an admin proposes a change, and an approver applies it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction

from controlplane.core import authority, reasons
from controlplane.core.actors import Actor
from controlplane.core.approvals import services as approvals
from controlplane.core.approvals.models import Approval
from controlplane.core.audit import services as audit
from controlplane.core.errors import Conflict, Forbidden, InvalidInput, NotFound
from controlplane.core.roles import Role
from switches import publication
from switches.episodes import changes
from switches.models import Episode, OnExpiry, Rule
from switches.rules import evaluation, guard
from switches.rules.evaluation import SafetyRule
from switches.rules.proposal import FIELDS, validate_proposal

RuleFields = dict[str, Any]
NO_RULE: RuleFields = dict.fromkeys(FIELDS)


@dataclass(frozen=True)
class RuleProposal:
    """A proposed change of a safety rule: the rule before and after, and the approval request."""

    before: SafetyRule | None
    after: SafetyRule | None
    approval: Approval


def propose_rule(
    *,
    rule_id: int | None = None,
    fields: RuleFields | None,
    reason: str = "",
    actor: Actor,
    now: datetime,
) -> RuleProposal:
    """Propose a new rule (`rule_id` None), a change, or a removal (`fields` None).

    `fields` are those of the rule. Raise :class:`Forbidden` for actors other than admins,
    :class:`InvalidInput`, :class:`NotFound`, or :class:`Conflict` if the rule would not change
    or another change of it is pending.
    """
    require_admin(actor)
    return request_change(rule_id=rule_id, fields=fields, reason=reason, actor=actor, now=now)


def request_change(
    *,
    rule_id: int | None,
    fields: RuleFields | None,
    reason: str,
    actor: Actor,
    now: datetime,
) -> RuleProposal:
    """Do what :func:`propose_rule` does, after the check of the actor's permission."""
    errors: dict[str, list[str]] = {}
    if reason and (problems := reasons.find_text_problems(reason, called="reason")):
        errors["reason"] = problems
    after = None
    try:
        after = validate_proposal(fields) if fields is not None else None
    except InvalidInput as error:
        errors.update(error.errors)
    if errors:
        raise InvalidInput(errors)
    with transaction.atomic():
        publication.lock()
        row = Rule.objects.select_for_update().filter(pk=rule_id).first() if rule_id else None
        if rule_id is not None and row is None:
            raise NotFound(f"Rule {rule_id} doesn't exist.")
        before = guard.to_safety_rule(row) if row else None
        if before == after:
            raise Conflict("The rule is already like this. No approval was requested.")
        _require_free_name(after, row)
        named = before or after
        assert named is not None  # noqa: S101 - they differ, so one of them is there
        was, becomes = (rule.as_dict() if rule else NO_RULE for rule in (before, after))
        approval = approvals.request_approval(
            kind=Approval.Kind.RULE_CHANGE,
            target=f"rule:{named.name}",
            summary=_summarize(before, after),
            diff={field: [was[field], becomes[field]] for field in FIELDS},
            reason=reason.strip(),
            risk="high",
            actor=actor,
            now=now,
        )
        return RuleProposal(before, after, approval)


def require_admin(actor: Actor) -> None:
    """Raise :class:`Forbidden` unless the actor is an admin or an admin's write token."""
    actor.require("switches:write")
    if actor.type != "system" and actor.role != Role.ADMIN:
        raise Forbidden("Only admins may propose changes of safety rules.")
    authority.require_in_limits(actor)


def _require_free_name(after: SafetyRule | None, row: Rule | None) -> None:
    if after is None:
        return
    same = Rule.objects.filter(name__iexact=after.name)
    other = (same.exclude(pk=row.pk) if row else same).first()
    if other is not None:
        raise InvalidInput({"name": [f"A rule named “{other.name}” already exists."]})


def _summarize(before: SafetyRule | None, after: SafetyRule | None) -> str:
    was, becomes = (rule and evaluation.describe_rule(rule) for rule in (before, after))
    if before is None:
        text = f"New rule “{after.name}”: {becomes}" if after else ""
    elif after is None:
        text = f"Remove the rule “{before.name}”: {was}"
    else:
        text = f"Change the rule “{before.name}”: {becomes}, instead of: {was}"
    return text if len(text) <= 300 else f"{text[:299]}…"


def _read_rules(diff: Mapping[str, Any]) -> list[RuleFields | None]:
    """Return the rule before and after a requested change, None where there is none."""
    rules = ({field: diff[field][side] for field in FIELDS} for side in (0, 1))
    return [rule if rule["name"] else None for rule in rules]


def _describe_changes(requests: Sequence[Approval]) -> list[dict[str, Any]]:
    described = []
    for request in requests:
        sides = [
            rule and evaluation.describe_rule(SafetyRule(**rule))
            for rule in _read_rules(request.diff)
        ]
        described.append({"name": request.diff["name"], "rule": sides})
    return described


@approvals.on_approval(
    Approval.Kind.RULE_CHANGE,
    lock_first=publication.lock_with_teams,
    check_reason=reasons.find_text_problems,
    describe_changes=_describe_changes,
)
def _carry_out(approval: Approval, actor: Actor, now: datetime) -> None:
    """Apply the approved change; raise :class:`Conflict` if the rule has changed meanwhile."""
    publication.lock()
    before, after = _read_rules(approval.diff)
    row = None
    if before is not None:
        row = Rule.objects.select_for_update().filter(name=before["name"]).first()
        if row is None or guard.to_safety_rule(row).as_dict() != before:
            raise Conflict("The rule has changed since this request. Request the change again.")
    proposal = validate_proposal(after) if after is not None else None
    _require_free_name(proposal, row)
    action = _write(row, proposal, approval, now)
    if proposal is not None:
        hold_protected_episodes(now=now, actor=actor)
    audit.record(
        actor=actor,
        action=action,
        target=approval.target,
        reason=approval.reason,
        before=before,
        after=after,
        now=now,
    )


def _write(row: Rule | None, after: SafetyRule | None, approval: Approval, now: datetime) -> str:
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


def hold_protected_episodes(*, actor: Actor, now: datetime) -> int:
    """Set the expiry policy `hold` on episodes whose policy the rules forbid; return how many.

    Each switch is published again, because disconnected clients act on the last policy they
    received. Runs in the caller's transaction.
    """
    head = publication.lock()
    rules = guard.list_rules()
    may_end = Episode.objects.filter(ended_at__isnull=True).exclude(on_expiry=OnExpiry.HOLD)
    found = 0
    for episode in may_end.select_for_update().select_related("switch").order_by("switch_id"):
        rule = evaluation.forbidding_rule(rules, episode.switch_id, episode.on_expiry)
        if rule is None:
            continue
        switch = episode.switch
        before = changes.audit_state(switch, episode)
        changes.update_episode(episode, {"on_expiry": OnExpiry.HOLD})
        publication.publish(head, switch, now)
        text = f"The rule “{rule.name}” covers it now, so it stays engaged at its expiry."
        changes.record_change(
            "switch.held", switch, episode, actor, now, before=before, reason=text
        )
        found += 1
    return found
