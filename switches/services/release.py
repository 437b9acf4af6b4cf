"""Letting traffic flow again: by a ramp, or at once."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction

from controlplane.core import reasons
from controlplane.core.actors import Actor, label_of
from controlplane.core.approvals import services as approvals
from controlplane.core.approvals.models import Approval
from controlplane.core.ended_sessions import retry_if_ended
from controlplane.core.errors import Conflict, Forbidden, InvalidInput
from controlplane.core.jobs.models import Job
from controlplane.core.roles import Power, Role
from switches import publication
from switches.models import Publication, Ramp, Switch
from switches.ramps import creation, live_ramps
from switches.ramps import plan as plans
from switches.rules import glass, guard
from switches.rules.glass import TWO_PERSON, Glass
from switches.rules.judge import Refusal
from switches.scopes import GLOBAL, approves_immediate_release
from switches.services import asked
from switches.services.asked import Wish
from switches.services.register import engaged, identify

MODES = ("ramp", "immediate")


@dataclass(frozen=True)
class Release:
    """What releasing did: a ramp began, the switch was released, or an approval waits.

    `review` is what somebody else has to sign, if a rule was overridden.
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
    actor: Actor,
    now: datetime,
) -> Release:
    """Release a switch by a ramp, or at once; or ask for the approval that
    :func:`needs_second_person` tells of.

    `plan` and `max_hold_seconds` are read by :func:`switches.ramps.plan.read`. `break_glass`
    (`{"rule", "reason"}`) lets an approver go on at once: it names the rules in the way, of which
    `two-person` is one. The server's shell needs no second person, only a review. Raises
    :class:`InvalidInput`, :class:`Forbidden` (at once takes the role of an approver),
    :class:`Conflict` if it is released or ramps already, :class:`SafetyRefused` if a rule is in
    the way.
    """
    actor.require("switches:write")
    identify(scope, key)
    steps = _checked(justification, mode, plan, max_hold_seconds)
    override = glass.read(break_glass)
    with transaction.atomic():
        head = publication.lock()
        switch, episode = engaged(scope, key)
        wish = Wish(switch, episode, justification.strip(), steps)
        if steps is not None:
            _not_ramping_yet(switch)
        refusals = guard.refusals_to_release(switch.pk)
        if needs_second_person(switch, at_once=wish.is_hasty):
            if override is None and not _is_shell(actor):
                glass.overridden(refusals, None)
                return Release(switch, approval=asked.ask(wish, actor, now))
            refusals.append(two_person(switch))
        elif wish.at_once:
            _may_at_once(actor)
        if _is_shell(actor):
            override = _of_the_shell(override, justification)
        rules = glass.overridden(refusals, override)
        return _carry_out(head, wish, rules, override, actor, now)


def needs_second_person(switch: Switch, *, at_once: bool) -> bool:
    """Return True if a release needs an approver other than the requester.

    Always for the global switch; for a segment or a protected switch if all traffic is to flow at
    once, or by a hasty plan (:func:`switches.ramps.plan.is_hasty`).
    """
    if switch.scope == GLOBAL.name:
        return True
    return at_once and (approves_immediate_release(switch.scope) or guard.is_protected(switch.pk))


def _checked(
    justification: str, mode: str, plan: Any, max_hold_seconds: Any
) -> list[dict[str, Any]] | None:
    errors: dict[str, list[str]] = {}
    if problems := reasons.unreadable(justification):
        errors["justification"] = problems
    if mode not in MODES:
        errors["mode"] = [f"Must be one of {', '.join(MODES)}."]
    steps = None
    if mode == "ramp":
        try:
            steps = plans.read(plan, max_hold_seconds)
        except InvalidInput as error:
            errors |= error.errors
    elif plan is not None:
        errors["plan"] = ["Only a release by ramp has a plan; leave it out, or leave out `mode`."]
    if errors:
        raise InvalidInput(errors)
    return steps


def _not_ramping_yet(switch: Switch) -> None:
    ramp = live_ramps.of_switch(switch.pk)
    if ramp is None or ramp.job.state == Job.State.PENDING:
        return
    who = label_of(ramp.requested_by_type, ramp.requested_by_name)
    raise Conflict(
        f"{switch.pk} is ramping already, by {who}; abort that ramp to begin another.",
        ramp=ramp.pk,
        state=live_ramps.STATES[ramp.job.state],
    )


def _may_at_once(actor: Actor) -> None:
    """To let everything flow at once is an approver's; an operator's way is a ramp."""
    if not _may_like_an_approver(actor):
        raise Forbidden(
            "To release at once takes the role of an approver. Leave out `mode`, and it is "
            "released by a ramp whose steps wait for something.",
            power=Power.APPROVE.value,
        )


def _may_override(actor: Actor, rules: tuple[str, ...]) -> None:
    """Against a safety rule goes who has the role of an approver, also by a token; in the place of
    a second person only a person does."""
    if TWO_PERSON in rules and not _is_shell(actor):
        actor.require_power(Power.APPROVE)
    if not _may_like_an_approver(actor):
        raise Forbidden(
            "To release against a safety rule takes the role of an approver.",
            power=Power.APPROVE.value,
        )


def _may_like_an_approver(actor: Actor) -> bool:
    return _is_shell(actor) or actor.role in (Role.APPROVER, Role.ADMIN)


def _carry_out(
    head: Publication,
    wish: Wish,
    rules: tuple[str, ...],
    override: Glass | None,
    actor: Actor,
    now: datetime,
) -> Release:
    """Begin the ramp, or release. Against the rules it is loud."""
    switch, episode, broken = wish.switch, wish.episode, None
    if override and rules:
        _may_override(actor, rules)
        broken = glass.told(override.reason, rules, "release", actor)
        episode.broke_glass = {**(episode.broke_glass or {}), "release": broken}
        episode.save(update_fields=["broke_glass"])
    ramp = None
    if wish.steps is None:
        entry = asked.close(head, switch, episode, wish.justification, actor, now)
    else:
        why = "Another ramp was begun instead."
        overtaken = live_ramps.of_switch(switch.pk)
        if overtaken is not None:
            asked.end(overtaken, switch, why, actor, now)
        ramp, entry = creation.begin(
            head,
            switch,
            episode,
            steps=wish.steps,
            justification=wish.justification,
            overridden=rules,
            actor=actor,
            now=now,
        )
        if overtaken is not None:  # What waited for a second person waits no more.
            kind = Approval.Kind.RELEASE
            approvals.void(kind=kind, target=switch.pk, actor=actor, now=now, why=why)
    review = glass.shout(switch, episode, broken, entry, actor, now) if broken else None
    return Release(switch, ramp=ramp, review=review)


def _is_shell(actor: Actor) -> bool:
    return actor.type == "system"


def _of_the_shell(override: Glass | None, justification: str) -> Glass:
    """Whoever is on the server acts alone; other rules than that have to be named there too."""
    if override is None:
        return Glass((TWO_PERSON,), justification.strip())
    return Glass((*override.rules, TWO_PERSON), override.reason)


def two_person(switch: Switch) -> Refusal:
    """The rule that its release waits for a second person, as one more that refuses."""
    passes = "Leave break_glass out, and it waits for an approver."
    return Refusal(
        TWO_PERSON, f"A second person has to approve the release of {switch.pk}.", passes
    )
