"""Pages of the rules of authority: who may do what."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from controlplane.accounts.requests import UserRequest
from controlplane.core import authority
from controlplane.core.actions import Action, Relation, Requirement
from controlplane.core.change_views import submitted_data
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict, InvalidInput
from controlplane.core.http.confirmation import require_fresh
from controlplane.core.http.permissions import actor_of
from controlplane.core.page_responses import page_view, respond_done, show
from controlplane.core.roles import Power, Role

from . import queries, rules
from .api import ALL_KINDS
from .forms import RuleForm

PAGE = "authority_page"
ABOUT_ACTIONS = {
    Action.ENGAGE: "Also trip switches, force breakers open, and pause or abort ramps.",
    Action.EXTEND: "Also acknowledge and reconfirm.",
    Action.RELEASE: "By a ramp. Also resume ramps.",
    Action.RELEASE_AT_ONCE: "Without a ramp. Also advance ramps before their time.",
    Action.APPROVE: "Decide the requests of others.",
    Action.OVERRIDE: "Force breakers other than open, end a forced open, exclude times from SLOs.",
    Action.REPLAY: "Also edit and restore dead letters.",
    Action.PURGE: "Also discard dead letters.",
    Action.EDIT: "Registrations, policies, teams.",
}
ABOUT_RELATIONS = (
    (Relation.ANYONE, "anyone", "of any team, or of none"),
    (
        Relation.OWNER,
        "the owner",
        "members of the owning team or a team above it; anyone, if nobody owns it",
    ),
    (Relation.ROOT, "a root team", "members of a team without a parent"),
)


@dataclass(frozen=True)
class RuleGroup:
    """The rules for one action, that for all kinds last."""

    action: Action
    label: str
    about: str
    rules: Sequence[dict[str, Any]]


@page_view("GET")
def rules_page(request: UserRequest) -> HttpResponse:
    groups = [
        RuleGroup(action, label_action(action), ABOUT_ACTIONS[action], _list_rules(action))
        for action in Action
    ]
    context = {
        "now": db_now(),
        "groups": groups,
        "pending": [one for one in queries.list_pending() if one.target.startswith(rules.PREFIX)],
        "may_change": request.user.is_admin,
        "has_teams": bool(authority.read_teams()),
    }
    return render(request, "core/authority.html", context)


@page_view("GET", "POST")
def new_rule(request: UserRequest) -> HttpResponse:
    """Show the form of a rule for a kind of resources, or request it."""
    return _change_or_show(request, None, "")


@page_view("GET", "POST")
def change_rule(request: UserRequest, action: str, kind: str) -> HttpResponse:
    """Show the form of a rule, or request its change; `kind` is `all` for that of all kinds."""
    if action not in list(Action) or kind not in (ALL_KINDS, *rules.list_rule_kinds()):
        raise Http404
    return _change_or_show(request, Action(action), "" if kind == ALL_KINDS else kind)


def label_action(action: str) -> str:
    return action.replace("_", " ").capitalize()


def _label_kind(action: Action, kind: str) -> str:
    if kind:
        return "teams" if kind == "team" else f"{kind}:*"
    has_others = any(one.kind for one in rules.list_rules() if one.action == action)
    return "everything else" if has_others else "everything"


def _list_rules(action: Action) -> list[dict[str, Any]]:
    found = [one for one in rules.list_rules() if one.action == action]
    found.sort(key=lambda one: one.kind == "")
    return [
        {
            "row": one,
            "kind": _label_kind(action, one.kind),
            "who": rules.describe_requirement(one.rule),
            "default": rules.describe_requirement(one.default) if one.default else "",
            "path": reverse("authority_change", args=[action, one.kind or ALL_KINDS]),
        }
        for one in found
    ]


def _change_or_show(request: UserRequest, action: Action | None, kind: str) -> HttpResponse:
    actor, now = actor_of(request), db_now()
    actor.require_power(Power.ADMINISTER)
    require_fresh(request, now)
    present = _find_rule(action, kind) if action else None
    rule = present.rule if present else Requirement(Relation.OWNER, Role.OPERATOR)
    initial = {"action": action, "kind": kind, "relation": rule.relation, "role": rule.role}
    form = RuleForm(submitted_data(request), initial=initial)
    status, more = 422 if form.is_bound else 200, {}
    if form.is_valid():
        wanted = {"relation": form.get_text("relation"), "role": form.get_text("role")}
        try:
            approval = rules.change_rule(
                action=action or form.get_text("action"),
                kind=kind if action else form.get_text("kind"),
                wanted=None if "restore" in request.POST else wanted,
                reason=form.get_text("reason").strip(),
                actor=actor,
                now=now,
            )
        except InvalidInput as error:
            form.add_service_errors(error.errors)
        except Conflict as conflict:
            more["refused"], status = conflict.detail, 409
        else:
            message = "Nothing changed: the rule is like this already."
            if approval is not None:
                message = f"Approval requested: {approval.summary}."
            return respond_done(request, message, reverse(PAGE), waits=approval is not None)
    context = {
        "form": form,
        "present": present,
        "path": request.path,
        "label": label_action(action) if action else "",
        "kind_label": _label_kind(action, kind) if action else "",
        "default": rules.describe_requirement(present.default)
        if present and present.is_stored and present.default
        else "",
        "may_restore": bool(present and present.is_stored),
        "actions": [(one.value, label_action(one)) for one in Action],
        "kinds": rules.list_rule_kinds(),
        "relations": ABOUT_RELATIONS,
        "roles": [one.value for one in Role],
        "approvers": authority.who_may(Action.APPROVE, "authority:", but=request.user.pk),
        **more,
    }
    return show(request, "core/authority_form.html", context, status=status)


def _find_rule(action: Action, kind: str) -> rules.RuleRow | None:
    """Return the rule of an action and kind, None if the kind has none of its own."""
    found = (one for one in rules.list_rules() if (one.action, one.kind) == (action, kind))
    return next(found, None)
