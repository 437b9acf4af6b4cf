"""Writes of the rules of authority; a person's change waits for a second person."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction

from controlplane.accounts.models.teams import AuthorityRule
from controlplane.core import wakeups
from controlplane.core.actions import DEFAULT_RULES, Action, Relation, Requirement
from controlplane.core.actors import Actor
from controlplane.core.approvals import services as approvals
from controlplane.core.approvals.models import Approval
from controlplane.core.audit import services as audit
from controlplane.core.errors import Conflict, InvalidInput
from controlplane.core.ownership import list_kinds
from controlplane.core.roles import Power, Role

from . import lockout
from .fields import require_reason
from .state import TEAM
from .storage import lock_teams, read_teams

KIND = Approval.Kind.AUTHORITY_CHANGE
PREFIX = "authority:"
OUTDATED = "The rule has changed since this request. Request the change again."
Pair = dict[str, str] | None
"""A stored rule, `relation` and `role`, or None for the default."""


@dataclass(frozen=True)
class RuleRow:
    """The rule that holds for an action on resources of a kind, "" for all without their own.

    `default` is the rule without a stored one, None if the kind has none of its own.
    """

    action: Action
    kind: str
    rule: Requirement
    default: Requirement | None
    is_stored: bool

    @property
    def target(self) -> str:
        return name_target(self.action, self.kind)


def list_rules() -> list[RuleRow]:
    """Return the rules that hold: for each action that for all kinds, then those of kinds."""
    stored = read_teams().rules
    keys = [
        (action, kind)
        for action in Action
        for kind in ("", *list_rule_kinds())
        if (action, kind) in DEFAULT_RULES or (action, kind) in stored
    ]
    return [
        RuleRow(
            action,
            kind,
            stored.get((action, kind)) or DEFAULT_RULES[action, kind],
            DEFAULT_RULES.get((action, kind)),
            (action, kind) in stored,
        )
        for action, kind in keys
    ]


def list_rule_kinds() -> tuple[str, ...]:
    """Return the kinds of resources that can have rules."""
    return (*list_kinds(), TEAM)


def name_target(action: str, kind: str) -> str:
    """Return the audit target of a rule."""
    return f"{PREFIX}{action}:{kind}"


@transaction.atomic
def change_rule(
    *,
    action: str,
    kind: str,
    wanted: Mapping[str, str] | None,
    reason: str = "",
    actor: Actor,
    now: datetime,
) -> Approval | None:
    """Set the `relation` and `role` that an action on a kind of resources requires.

    None restores the default. Return the request for approval; None if the actor needs none, or
    nothing would change. Raise :class:`Forbidden` unless the actor is a signed-in admin, and
    :class:`InvalidInput`.
    """
    if actor.type != "system":
        actor.require_power(Power.ADMINISTER)
    return request_change(
        action=action, kind=kind, wanted=wanted, reason=reason, actor=actor, now=now
    )


@transaction.atomic
def request_change(
    *,
    action: str,
    kind: str,
    wanted: Mapping[str, str] | None,
    reason: str,
    actor: Actor,
    now: datetime,
) -> Approval | None:
    """Do what :func:`change_rule` does, after the check of permissions."""
    after = check_rule(action, kind, wanted)
    lock_teams(to_change=True)
    before = _read_pair(action, kind)
    if before == after:
        return None
    if actor.type == "system":
        store_rule(action, kind, after)
        _record(action, kind, before, after, reason.strip(), actor, now)
        return None
    require_reason(reason)
    with transaction.atomic():  # Try it, so that the request can be carried out.
        _store_checked(action, kind, after)
        transaction.set_rollback(True)
    return approvals.request_approval(
        kind=KIND,
        target=name_target(action, kind),
        summary=_summarize(action, kind, after),
        diff={
            field: [before and before[field], after and after[field]]
            for field in ("relation", "role")
        },
        reason=reason.strip(),
        actor=actor,
        now=now,
    )


def carry_out(approval: Approval, actor: Actor, now: datetime) -> None:
    """Apply an approved change of a rule; raise :class:`Conflict` if the rule has changed."""
    action, _, kind = approval.target.removeprefix(PREFIX).partition(":")
    before, after = (
        {field: approval.diff[field][side] for field in ("relation", "role")} for side in (0, 1)
    )
    stored = _read_pair(action, kind)
    if (stored or dict.fromkeys(before)) != before:
        raise Conflict(OUTDATED)
    wanted = after if after["role"] else None
    _store_checked(action, kind, wanted)
    _record(action, kind, stored, wanted, approval.reason, actor, now)


def check_rule(action: str, kind: str, wanted: Mapping[str, str] | None) -> Pair:
    """Return the valid rule; raise :class:`InvalidInput` with all errors."""
    errors = {}
    if action not in list(Action):
        errors["action"] = [f"Must be one of {', '.join(Action)}."]
    if kind not in ("", *list_rule_kinds()):
        errors["kind"] = [f"Must be empty, or one of {', '.join(list_rule_kinds())}."]
    if wanted is not None and wanted.get("relation") not in list(Relation):
        errors["relation"] = [f"Must be one of {', '.join(Relation)}."]
    if wanted is not None and wanted.get("role") not in list(Role):
        errors["role"] = [f"Must be one of {', '.join(Role)}."]
    if errors:
        raise InvalidInput(errors)
    if wanted is None:
        return None
    return {"relation": str(wanted["relation"]), "role": str(wanted["role"])}


def describe_requirement(rule: Requirement) -> str:
    """Return who meets a requirement, in words: `an operator of the owning team`."""
    article = "an" if rule.role in (Role.OPERATOR, Role.APPROVER, Role.ADMIN) else "a"
    where = {
        Relation.ANYONE: "of any team or none",
        Relation.OWNER: "of the owning team, or of a team above it",
        Relation.ROOT: "of a root team",
    }[rule.relation]
    more = "" if rule.role == Role.ADMIN else " or a stronger role"
    return f"{article} {rule.role}{more}, {where}"


def _read_pair(action: str, kind: str) -> Pair:
    row = AuthorityRule.objects.filter(action=action, kind=kind).first()
    return {"relation": row.relation, "role": row.role} if row else None


def store_rule(action: str, kind: str, after: Mapping[str, str] | None) -> None:
    """Store a rule, or the default if `after` is None, without a check or an audit entry."""
    if after is None:
        AuthorityRule.objects.filter(action=action, kind=kind).delete()
    else:
        AuthorityRule.objects.update_or_create(action=action, kind=kind, defaults=after)


def _store_checked(action: str, kind: str, after: Pair) -> None:
    before = read_teams()
    store_rule(action, kind, after)
    if lost := lockout.find_lost(before, read_teams()):
        raise InvalidInput({"relation": [lost]})


def _record(
    action: str, kind: str, before: Pair, after: Pair, reason: str, actor: Actor, now: datetime
) -> None:
    audit.record(
        actor=actor,
        action="authority.changed",
        target=name_target(action, kind),
        reason=reason,
        before=before,
        after=after,
        now=now,
    )
    wakeups.wake("credentials")


def _summarize(action: str, kind: str, after: Any) -> str:
    what = f"{action.replace('_', ' ')} {kind or 'anything'}"
    if after is None:
        return f"Restore the default rule: who may {what}"
    rule = Requirement(Relation(after["relation"]), Role(after["role"]))
    return f"Change who may {what}: {describe_requirement(rule)}"
