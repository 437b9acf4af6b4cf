"""Releasing a switch: gradually by a ramp, or immediately."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction

from controlplane.core import authority, reasons
from controlplane.core.actions import Action
from controlplane.core.actors import Actor, label_of
from controlplane.core.approvals import services as approvals
from controlplane.core.approvals.models import Approval
from controlplane.core.authority import AuthorityDecision
from controlplane.core.ended_sessions import retry_if_ended
from controlplane.core.errors import Conflict, Forbidden, InvalidInput
from controlplane.core.jobs.models import Job
from controlplane.core.roles import Power
from switches import publication
from switches.models import Publication, Ramp, Switch
from switches.ramps import creation, live_ramps
from switches.ramps import plan as plans
from switches.rules import guard
from switches.rules.break_glass import (
    OWNERSHIP,
    TWO_PERSON,
    RuleOverride,
    notify_break_glass,
    override_record,
    override_refusals,
    read_override,
)
from switches.rules.evaluation import Refusal
from switches.services import release_approval

from .registration import identify, lock_engaged
from .release_approval import ReleaseRequest

MODES = ("ramp", "immediate")


@dataclass(frozen=True)
class Release:
    """The result of a release: a started ramp, an approval request, or neither if immediate.

    `review` is the open review of a safety rule's override.
    """

    switch: Switch
    ramp: Ramp | None = None
    approval: Approval | None = None
    review: Approval | None = None


@retry_if_ended
def release(
    *,
    scope: str,
    key: str,
    justification: str,
    mode: str = "ramp",
    plan: Any = None,
    max_hold_seconds: Any = None,
    break_glass: Mapping[str, Any] | None = None,
    ask: bool = False,
    actor: Actor,
    now: datetime,
) -> Release:
    """Release a switch by a ramp or immediately, or request a second person's approval.

    :func:`switches.rules.guard.needs_second_person` decides on the approval; the server's shell
    needs only a review. With `ask`, a person requests the approval in any case, also of a release
    that belongs to another team. `plan` and `max_hold_seconds` are those of
    :func:`switches.ramps.plan.read_plan`. `break_glass` (`{"rule", "reason"}`) lets an approver
    override the named rules, even `two-person` and `ownership`. Raise :class:`InvalidInput`,
    :class:`Forbidden` (for others than the owner; an immediate release requires an approver),
    :class:`Conflict` if the switch is released or ramping, or :class:`SafetyRefused`.
    """
    actor.require("switches:write")
    identify(scope, key)
    steps = _validate(justification, mode, plan, max_hold_seconds)
    override = read_override(break_glass)
    with transaction.atomic():
        head = publication.lock_with_teams()
        switch, episode = lock_engaged(scope, key)
        request = ReleaseRequest(switch, episode, justification.strip(), steps)
        if steps is not None:
            _require_no_live_ramp(switch)
        refusals = guard.refusals_to_release(switch.pk)
        needs_approval = guard.needs_second_person(switch, at_once=request.is_hasty)
        action = Action.RELEASE
        if request.at_once and not needs_approval:
            action = Action.RELEASE_AT_ONCE
        decision = authority.decide(actor, action, switch.pk)
        is_asking = ask and (decision.is_allowed or actor.is_person)
        if not decision.is_allowed and not is_asking:
            if override is None or not decision.can_ask:
                raise _build_refusal(actor, action, switch, decision)
            refusals.append(ownership_refusal(switch, decision))
        if is_asking or (needs_approval and override is None and not _is_shell(actor)):
            override_refusals(refusals, None)
            return Release(switch, approval=release_approval.request_approval(request, actor, now))
        if needs_approval:
            refusals.append(two_person_refusal(switch))
        if _is_shell(actor):
            given = override or RuleOverride((), justification.strip())
            override = RuleOverride((*given.rules, TWO_PERSON), given.reason)
        rules = override_refusals(refusals, override)
        return _carry_out(head, request, rules, override, actor, now)


def _validate(
    justification: str, mode: str, plan: Any, max_hold_seconds: Any
) -> list[dict[str, Any]] | None:
    errors: dict[str, list[str]] = {}
    if problems := reasons.find_text_problems(justification):
        errors["justification"] = problems
    if mode not in MODES:
        errors["mode"] = [f"Must be one of {', '.join(MODES)}."]
    steps = None
    if mode == "ramp":
        try:
            steps = plans.read_plan(plan, max_hold_seconds)
        except InvalidInput as error:
            errors |= error.errors
    elif plan is not None:
        errors["plan"] = ["Only a release by ramp has a plan. Omit the plan, or omit `mode`."]
    if errors:
        raise InvalidInput(errors)
    return steps


def _require_no_live_ramp(switch: Switch) -> None:
    ramp = live_ramps.find_live_ramp(switch.pk)
    if ramp is None or ramp.job.state == Job.State.PENDING:
        return
    who = label_of(ramp.requested_by_type, ramp.requested_by_name)
    raise Conflict(
        f"{switch.pk} is already ramping, started by {who}. Abort that ramp first.",
        ramp=ramp.pk,
        state=live_ramps.STATES[ramp.job.state],
    )


def _build_refusal(
    actor: Actor, action: Action, switch: Switch, decision: AuthorityDecision
) -> Forbidden:
    refused = authority.build_refusal(decision, action, switch.pk)
    if authority.decide(actor, Action.RELEASE, switch.pk).is_allowed:
        hint = f"{decision.detail} Omit `mode` to release by a ramp."
        return Forbidden(hint, **refused.extra)
    return refused


def _carry_out(
    head: Publication,
    request: ReleaseRequest,
    rules: tuple[str, ...],
    override: RuleOverride | None,
    actor: Actor,
    now: datetime,
) -> Release:
    switch, episode, override_entry = request.switch, request.episode, None
    if override and rules:
        _require_override_power(actor, rules, switch)
        override_entry = override_record(override.reason, rules, "release", actor)
        episode.broke_glass = {**(episode.broke_glass or {}), "release": override_entry}
        episode.save(update_fields=["broke_glass"])
    ramp = None
    if request.steps is None:
        release_approval.release_at_once(head, switch, episode, request.justification, actor, now)
    else:
        why = "Another ramp was started instead."
        overtaken = live_ramps.find_live_ramp(switch.pk)
        if overtaken is not None:
            release_approval.end_pending_ramp(overtaken, switch, why, actor, now)
        ramp = creation.create_ramp(
            switch, episode, request.steps, request.justification, actor, now, overridden=[*rules]
        )
        creation.activate_ramp(head, switch, episode, ramp, actor=actor, now=now)
        if overtaken is not None:  # The replaced ramp's approval is obsolete.
            kind = Approval.Kind.RELEASE
            approvals.void_requests(kind=kind, target=switch.pk, actor=actor, now=now, why=why)
    if override_entry is None:
        return Release(switch, ramp=ramp)
    review = notify_break_glass(switch, episode, override_entry, actor, now)
    return Release(switch, ramp=ramp, review=review)


def _require_override_power(actor: Actor, rules: tuple[str, ...], switch: Switch) -> None:
    """Raise :class:`Forbidden` unless the actor may release the switch against these rules.

    Any approver may release what another team owns, but no token. A permission that the owner gave
    for an hour is not enough.
    """
    if _is_shell(actor):
        return
    if OWNERSHIP in rules or (TWO_PERSON in rules and not actor.is_person):
        actor.require_power(Power.APPROVE)
    elif not authority.read_teams().decide(actor, Action.RELEASE_AT_ONCE, switch.pk).is_allowed:
        raise Forbidden(
            "Releasing against a safety rule requires the role approver.",
            power=Power.APPROVE.value,
        )


def _is_shell(actor: Actor) -> bool:
    return actor.type == "system"


def ownership_refusal(switch: Switch, decision: AuthorityDecision) -> Refusal:
    passes = "Omit break_glass and set `ask` to request approval."
    return Refusal(OWNERSHIP, decision.detail, passes)


def two_person_refusal(switch: Switch) -> Refusal:
    passes = "Omit break_glass to request approval."
    return Refusal(TWO_PERSON, f"A second person must approve the release of {switch.pk}.", passes)
