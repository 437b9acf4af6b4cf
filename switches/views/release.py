"""Release page: by a ramp with an editable plan, or immediately."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from controlplane.core import authority
from controlplane.core.actions import Action
from controlplane.core.actors import Actor
from controlplane.core.authority import AuthorityDecision
from controlplane.core.change_views import submitted_data
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict, Forbidden, InvalidInput
from controlplane.core.gates import options
from controlplane.core.gates.kinds import GATE_KINDS
from controlplane.core.http.permissions import actor_of
from controlplane.core.page_responses import (
    PersonRequest,
    is_in_dialog,
    respond_done,
    show,
    signed_in,
)
from controlplane.core.roles import Power
from switches import blast, services
from switches.confirmation import require_confirmation
from switches.forms import ReleaseForm
from switches.models import Ramp, Switch
from switches.ramps import descriptions, live_ramps, plan_buttons, plan_editor
from switches.ramps import plan as plans
from switches.ramps.plan_editor import Editor
from switches.rules import guard
from switches.rules.break_glass import SafetyRefused
from switches.rules.evaluation import Refusal
from switches.services import Release
from switches.services.release import ownership_refusal, two_person_refusal

from .actions import read_switch, show_refusal

RAMP, IMMEDIATE = "ramp", "immediate"
TEMPLATE, EDITOR = "switches/release.html", "switches/_plan_editor.html"
_APPLIED = "its page shows which instances have applied it"
PART = "plan-editor"
"""Id of the form part that the plan's edit buttons replace."""


@signed_in
@require_http_methods(["GET", "POST"])
def release_page(request: PersonRequest, scope: str, key: str) -> HttpResponse:
    """Show the release form on GET; on POST, release the switch.

    An edit button of the plan shows the form with the changed plan instead.
    """
    switch = read_switch(scope, key)
    actor = actor_of(request)
    actor.require("switches:write")
    now = db_now()
    require_confirmation(request, scope, now)
    form = ReleaseForm(submitted_data(request))
    valid = form.is_valid()
    submitted = plan_editor.read_form(request.POST)
    last = live_ramps.find_last_ramp(switch.pk)
    editor = submitted or _propose_plan(last)
    if button := request.POST.get("do", ""):
        return _show_edited(request, switch, form, editor, last, button, now)
    if not form.is_bound:
        return _show(request, switch, form, editor, last, now)
    try:
        if valid:
            released = _carry_out(switch, form, submitted, actor, now)
            url = reverse("switch_page", args=[scope, key])
            is_shown = not released.approval and not released.review
            return respond_done(
                request,
                _describe_release(switch, released),
                url,
                shown_on=[url] if is_shown else [],
                waits=released.approval is not None,
            )
    except InvalidInput as error:
        of_plan = {name: texts for name, texts in error.errors.items() if name.startswith("plan")}
        form.add_service_errors(
            {name: texts for name, texts in error.errors.items() if name not in of_plan}
        )
        editor = editor.with_errors(of_plan)
    except SafetyRefused as refusal:
        more = {"refused": refusal.refusals}
        return _show(request, switch, form, editor, last, now, status=409, more=more)
    except Conflict as conflict:
        return show_refusal(request, switch.pk, "Nothing changed", conflict)
    except Forbidden as error:
        if form.break_glass() is not None:
            raise
        form.add_error(None, error.detail)
    return _show(request, switch, form, editor, last, now, status=422)


def _propose_plan(last: Ramp | None) -> Editor:
    """Return an editor with the plan of the last ramp, or with the default plan.

    A hasty plan must be chosen each time.
    """
    if last is None or plans.is_hasty(last.plan):
        return plan_editor.open_plan(plans.read_plan())
    return plan_editor.open_plan(last.plan)


def _carry_out(
    switch: Switch, form: ReleaseForm, submitted: Editor | None, actor: Actor, now: datetime
) -> Release:
    break_glass = form.break_glass()
    mode = (break_glass and form.get_text("glass_mode")) or form.get_text("mode") or RAMP
    if submitted is not None and mode == RAMP:
        _check_plan(submitted)
    return services.release(
        scope=switch.scope,
        key=switch.key,
        justification=form.get_text("justification"),
        mode=mode,
        plan=submitted.plan() if submitted is not None and mode == RAMP else None,
        break_glass=break_glass,
        ask=break_glass is None and bool(form.get_text("ask")),
        actor=actor,
        now=now,
    )


def _check_plan(editor: Editor) -> None:
    """Raise :class:`InvalidInput` if the plan is invalid, or a gate names what doesn't exist."""
    errors = editor.find_name_errors(options.find_unknown(editor.names()))
    try:
        plans.read_plan(editor.plan())
    except InvalidInput as error:
        errors |= error.errors
    if errors:
        raise InvalidInput(errors)


def _describe_release(switch: Switch, released: Release) -> str:
    if released.approval:
        then = "it stays engaged until then"
        if released.approval.diff.get("mode") == RAMP:
            then = "the ramp starts on approval"
        return f"Approval requested to release {switch.pk}; {then}."
    if released.ramp:
        share = descriptions.format_percent(released.ramp.plan[0]["percent"])
        message = f"{switch.pk} is ramping at {share}; {_APPLIED}."
    else:
        message = f"{switch.pk} is released; {_APPLIED}."
    return f"{message} A second person has to review it." if released.review else message


def _show_edited(
    request: PersonRequest,
    switch: Switch,
    form: ReleaseForm,
    editor: Editor,
    last: Ramp | None,
    button: str,
    now: datetime,
) -> HttpResponse:
    form.errors.clear()
    if button == plan_buttons.CHECK:
        try:
            _check_plan(editor)
        except InvalidInput as error:
            editor = editor.with_errors(error.errors)
    else:
        editor = plan_buttons.press_button(editor, button, request.POST)
    if request.htmx and not is_in_dialog(request):
        context = {
            "switch": switch,
            "is_open": True,
            "oob": True,
            "now": now,
            **_find_approvals(request, switch, editor),
            **_editor_context(editor, last, now),
        }
        return render(request, EDITOR, context)
    return _show(request, switch, form, editor, last, now, more={"is_open": True})


def _show(
    request: PersonRequest,
    switch: Switch,
    form: ReleaseForm,
    editor: Editor,
    last: Ramp | None,
    now: datetime,
    *,
    status: int = 200,
    more: Mapping[str, Any] | None = None,
) -> HttpResponse:
    actor, episode = actor_of(request), switch.episode
    ramp = live_ramps.find_live_ramp(switch.pk)
    is_ramping = ramp is not None and ramp.job.state != "pending"
    asks = _find_approvals(request, switch, editor)
    may_at_once = authority.decide(actor, Action.RELEASE_AT_ONCE, switch.pk).is_allowed
    rules, people = [], []
    if may_at_once or actor.has(Power.APPROVE):
        rules = guard.refusals_to_release(switch.pk)
        people = _list_overridable(switch, asks["owner"])
    context = {
        "switch": switch,
        "episode": episode,
        "form": form,
        "is_open": bool(editor.errors),
        "opened": _find_opened(form),
        "now": now,
        "ramp": ramp if is_ramping else None,
        "pending": None if is_ramping else ramp,
        **asks,
        "may_at_once": asks["at_once_asks"] or may_at_once,
        "approvers": authority.who_may(Action.APPROVE, switch.pk, but=request.user.pk),
        "refusals": [*rules, *people],
        "rules": rules,
        "may_break_glass": bool(rules or people) and episode is not None,
        "may_glass_ramp": not is_ramping and bool(rules or asks["ramp_asks"]),
        "wider": blast.wider_engaged(switch.pk, now) if episode else [],
        **_editor_context(editor, last, now),
        **(more or {}),
    }
    return show(request, TEMPLATE, context, status=status)


def _find_approvals(request: PersonRequest, switch: Switch, editor: Editor) -> dict[str, Any]:
    """Return which releases need an approval, and the `owner` if it is theirs to give."""
    decision = authority.decide(actor_of(request), Action.RELEASE, switch.pk)
    owner = decision if decision.can_ask else None
    return {
        "owner": owner,
        "ramp_asks": bool(owner) or guard.needs_second_person(switch, at_once=editor.is_hasty),
        "at_once_asks": bool(owner) or guard.needs_second_person(switch, at_once=True),
    }


def _list_overridable(switch: Switch, owner: AuthorityDecision | None) -> list[Refusal]:
    """Return the refusals, other than those of safety rules, that break-glass overrides."""
    refusals = [ownership_refusal(switch, owner)] if owner else []
    if guard.needs_second_person(switch, at_once=True):
        refusals.append(two_person_refusal(switch))
    return refusals


def _find_opened(form: ReleaseForm) -> str:
    """Return the part of the form that was open when it was sent: break-glass, immediate or none.

    The footer has the button of that part. The pressed button decides, whatever was typed into
    another part before: otherwise another red button would take its place.
    """
    if mode := form["mode"].value():
        return IMMEDIATE if mode == IMMEDIATE else ""
    has_override = form["glass_rule"].value() or form["glass_reason"].value()
    return "break-glass" if has_override else ""


def _editor_context(editor: Editor, last: Ramp | None, now: datetime) -> dict[str, Any]:
    return {
        "same_as": last if last and last.plan == editor.valid_plan else None,
        "plan": replace(editor, options=options.load_options(editor.option_lists, now)),
        "gate_types": [(kind.name, kind.label) for kind in GATE_KINDS.values()],
        "early": {"seconds": plans.MIN_EARLY_SECONDS, "percent": plans.MAX_EARLY_PERCENT},
        "most_steps": plans.MAX_STEPS,
        "most_gates": plans.MAX_GATES,
    }
