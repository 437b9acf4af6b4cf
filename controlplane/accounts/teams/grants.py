"""Requests for one action on what another team owns, which its approvers may allow for an hour."""

from datetime import datetime, timedelta

from django.db import transaction

from controlplane.core import authority, durations, ownership, reasons
from controlplane.core.actions import Action
from controlplane.core.actors import Actor
from controlplane.core.approvals import services as approvals
from controlplane.core.approvals.models import Approval
from controlplane.core.errors import Conflict, Forbidden, InvalidInput
from controlplane.core.scopes import SCOPES, global_switch_id, is_switch_id

from .state import PHRASES

GRANT_LIFETIME = timedelta(hours=1)
MAX_TARGET_LENGTH = 200
KIND = Approval.Kind.GRANT


def ask(*, action: str, resource: str, reason: str, actor: Actor, now: datetime) -> Approval:
    """Request that the owner of a resource allows a person one action on it for an hour.

    Return the approval request; an equal one that is pending is returned again. Raise
    :class:`InvalidInput`, :class:`Forbidden` for tokens and for what nobody can be asked for, and
    :class:`Conflict` if the person may already do it.
    """
    if not actor.is_person:
        raise Forbidden("Only a signed-in person can ask; tokens can't.")
    wanted = _validate(action, resource, reason, actor)
    with transaction.atomic():
        decision = authority.decide(actor, wanted, resource)
        if decision.is_allowed:
            raise Conflict(f"{resource}: you may already {PHRASES[wanted]}.")
        if not decision.can_ask:
            raise authority.build_refusal(decision, wanted, resource)
        lifetime = durations.format_readable(GRANT_LIFETIME)
        return approvals.request_approval(
            kind=KIND,
            target=grant_target(wanted, resource, actor.user_id or 0),
            summary=f"{resource}: let {actor.name} {PHRASES[wanted]}, for {lifetime}",
            diff={"action": wanted.value, "resource": resource, "person": actor.name},
            reason=reason.strip(),
            risk="critical" if resource == global_switch_id() else "",
            actor=actor,
            now=now,
        )


def _validate(action: str, resource: str, reason: str, actor: Actor) -> Action:
    errors: dict[str, list[str]] = {}
    if action not in set(Action):
        errors["action"] = [f"Must be one of {', '.join(Action)}."]
    if problem := find_resource_problem(resource):
        errors["resource"] = [problem]
    elif action in set(Action):
        target = grant_target(Action(action), resource, actor.user_id or 0)
        if len(target) > MAX_TARGET_LENGTH:
            errors["resource"] = ["This name is too long for a request. Ask in person."]
    if problems := reasons.find_text_problems(reason):
        errors["reason"] = problems
    if errors:
        raise InvalidInput(errors)
    return Action(action)


def grant_target(action: Action, resource: str, user_id: int) -> str:
    """Return the target of an approval request that asks for an action on a resource."""
    return f"{resource}#{action}:{user_id}"


def find_resource_problem(resource: str) -> str:
    """Return a sentence that says why a text names no resource that teams can own, or ""."""
    if problem := ownership.find_problem(resource):
        return problem
    is_switch = ownership.kind_of(resource) in SCOPES
    if "*" in resource or (is_switch and not is_switch_id(resource)):
        return f"{resource!r} is not the name of one resource."
    return ""


@approvals.on_approval(
    KIND,
    check_reason=reasons.find_text_problems,
    requires_confirmation=lambda approval: approval.diff["resource"] == global_switch_id(),
)
def _allow(_approval: Approval, _actor: Actor, _now: datetime) -> None:
    """Do nothing more: the approved request is the permission."""
