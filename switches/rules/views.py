"""Page of safety rules, and forms that propose changes."""

import re
from typing import Any

from django import forms
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods

from controlplane.accounts.people.authority import approvers
from controlplane.core.approvals.models import Approval
from controlplane.core.change_views import submitted_data
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict, InvalidInput
from controlplane.core.http.permissions import actor_of
from controlplane.core.page_responses import PersonRequest, respond_done, show, signed_in
from controlplane.core.roles import Role
from switches import page_updates
from switches.dry_run import discard_writes
from switches.forms import ReasonForm
from switches.models import Rule
from switches.rules import evaluation, queries, services

KINDS = (
    (evaluation.AT_MOST, "At most N", "at most N switches of the group engaged at once"),
    (evaluation.EXCLUSIVE, "One at a time", "only one switch of the group engaged at once"),
    (evaluation.AT_LEAST_ONE, "At least one", "the last engaged switch can't be released"),
    (evaluation.PROTECTED, "Protected", "not released automatically, or at once by one person"),
)

PAGE_SIZE = 50


class ProposeForm(ReasonForm):
    """Fields of a rule; switches and patterns are separated by lines or commas."""

    name = forms.CharField(max_length=400, required=False)
    kind = forms.ChoiceField(
        choices=[(kind, title) for kind, title, _ in KINDS], initial=evaluation.AT_MOST
    )
    switches = forms.CharField(max_length=10_000, required=False)
    n = forms.CharField(max_length=20, required=False, initial="1")

    def service_arguments(self) -> dict[str, Any]:
        """Return the `fields` to propose; `n` is None unless the rule is of kind `at_most`."""
        kind, n = self.get_text("kind"), self.get_text("n").strip()
        number = int(n) if n.isascii() and n.isdigit() else n or None
        return {
            "name": self.get_text("name"),
            "kind": kind,
            "switches": [text for text in re.split(r"[\s,]+", self.get_text("switches")) if text],
            "n": number if kind == evaluation.AT_MOST else None,
        }


@signed_in
@require_GET
def rules_page(request: PersonRequest) -> HttpResponse:
    after = page_updates.parse_id(request.GET.get("after", ""))
    found, more_after = page_updates.take_page(
        Rule.objects.filter(pk__gt=after or 0).order_by("pk"), PAGE_SIZE
    )
    changes = Approval.objects.filter(kind=Approval.Kind.RULE_CHANGE)
    context = {
        "now": db_now(),
        "rules": queries.read_statuses(found),
        "more_after": more_after,
        "first": not after,
        "pending": changes.filter(state=Approval.State.PENDING).order_by("id"),
        "may_change": request.user.role == Role.ADMIN,
    }
    return render(request, "switches/rules.html", context)


@signed_in
@require_http_methods(["GET", "POST"])
def edit_rule(request: PersonRequest, rule_id: int | None = None) -> HttpResponse:
    """Show the form of a new rule, or of an existing one; on POST, propose the change."""
    row = None if rule_id is None else _get_rule(rule_id)
    initial = {"kind": "at_most", "n": "1"}
    if row is not None:
        switches = "\n".join(row.switches)
        initial = {"name": row.name, "kind": row.kind, "switches": switches, "n": str(row.n or 1)}
    form = ProposeForm(submitted_data(request), initial=initial)
    return _handle_proposal(request, row, form, "switches/rule_form.html")


@signed_in
@require_http_methods(["GET", "POST"])
def remove_rule(request: PersonRequest, rule_id: int) -> HttpResponse:
    row, form = _get_rule(rule_id), ReasonForm(submitted_data(request))
    return _handle_proposal(request, row, form, "switches/rule_remove.html")


def _handle_proposal(
    request: PersonRequest, row: Rule | None, form: ReasonForm, template: str
) -> HttpResponse:
    actor = actor_of(request)
    services.require_admin(actor)
    now = db_now()
    more: dict[str, Any] = {}
    status = 422 if form.is_bound else 200
    if form.is_valid():
        try:
            proposal: dict[str, Any] = {
                "rule_id": row.pk if row else None,
                "fields": form.service_arguments() if isinstance(form, ProposeForm) else None,
                "actor": actor,
                "now": now,
            }
            if "check" in request.POST and isinstance(form, ProposeForm):
                with discard_writes():
                    after = services.propose_rule(**proposal).after
                more["outlook"], status = queries.preview_now(after) if after else None, 200
            elif reason := form.get_text("reason").strip():
                proposed = services.propose_rule(**proposal, reason=reason)
                message = f"Approval requested: {proposed.approval.summary}."
                return respond_done(request, message, reverse("rules_page"))
            else:
                form.add_error("reason", "Enter a reason. The approver reads it.")
        except InvalidInput as error:
            form.add_service_errors(error.errors)
        except Conflict as conflict:
            more["refused"], status = conflict.detail, 409
    context = {
        "form": form,
        "row": row,
        "status": queries.read_statuses([row])[0] if row else None,
        "kinds": KINDS,
        "approvers": approvers(but=request.user.pk),
        "now": now,
        **more,
    }
    return show(request, template, context, status=status)


def _get_rule(rule_id: int) -> Rule:
    row = Rule.objects.filter(pk=rule_id).first()
    if row is None:
        raise Http404
    return row
