"""Page of safety rules, and forms that propose changes."""

from datetime import datetime
from typing import Any

from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods

from controlplane.accounts.people.authority import approvers
from controlplane.core.actors import Actor
from controlplane.core.clock import db_now
from controlplane.core.dry_run import discard_writes
from controlplane.core.errors import Conflict, InvalidInput
from controlplane.core.http.permissions import actor_of
from controlplane.core.page_responses import PersonRequest, respond_done, show, signed_in
from controlplane.core.roles import Role
from switches.models import Rule
from switches.rules import queries, services
from switches.rules.forms import KINDS, ProposeForm, RemoveForm, initial_of
from switches.rules.proposal import RulePreview

PAGE_SIZE = 50


@signed_in
@require_GET
def rules_page(request: PersonRequest) -> HttpResponse:
    """Show the rules with their status and pending changes."""
    after = request.GET.get("after", "")
    rows = Rule.objects.order_by("pk")
    if after.isascii() and after.isdigit() and len(after) < 19:
        rows = rows.filter(pk__gt=int(after))
    found = list(rows[: PAGE_SIZE + 1])
    context = {
        "now": db_now(),
        "rules": queries.rule_statuses(found[:PAGE_SIZE]),
        "more_after": found[PAGE_SIZE - 1].pk if len(found) > PAGE_SIZE else None,
        "first": not after,
        "pending": queries.pending_changes(),
        "may_change": request.user.role == Role.ADMIN,
    }
    return render(request, "switches/rules.html", context)


@signed_in
@require_http_methods(["GET", "POST"])
def new_rule(request: PersonRequest) -> HttpResponse:
    form = ProposeForm(_posted(request), initial={"kind": "at_most", "n": "1"})
    return _propose(request, None, form, "switches/rules_form.html")


@signed_in
@require_http_methods(["GET", "POST"])
def change_rule(request: PersonRequest, rule_id: int) -> HttpResponse:
    row = _row(rule_id)
    form = ProposeForm(_posted(request), initial=initial_of(row))
    return _propose(request, row, form, "switches/rules_form.html")


@signed_in
@require_http_methods(["GET", "POST"])
def remove_rule(request: PersonRequest, rule_id: int) -> HttpResponse:
    return _propose(
        request, _row(rule_id), RemoveForm(_posted(request)), "switches/rules_remove.html"
    )


def _propose(
    request: PersonRequest, row: Rule | None, form: RemoveForm, template: str
) -> HttpResponse:
    """Show or process the form; the button `check` only previews the rule."""
    actor = actor_of(request)
    services.require_admin(actor)
    now = db_now()
    more: dict[str, Any] = {}
    status = 422 if form.is_bound else 200
    if form.is_valid():
        try:
            if "check" in request.POST and isinstance(form, ProposeForm):
                more["outlook"], status = _preview(form, row, actor, now), 200
            else:
                proposed = _propose_change(form, row, actor, now)
                message = f"Asked for approval: {proposed.approval.summary}."
                return respond_done(request, message, reverse("rules_page"))
        except InvalidInput as error:
            form.add_service_errors(error.errors)
        except Conflict as conflict:
            more["refused"], status = conflict.detail, 409
    context = {
        "form": form,
        "row": row,
        "stands": queries.rule_statuses([row])[0] if row else None,
        "kinds": KINDS,
        "approvers": approvers(but=request.user.pk),
        "now": now,
        **more,
    }
    return show(request, template, context, status=status)


def _propose_change(
    form: RemoveForm, row: Rule | None, actor: Actor, now: datetime
) -> services.RuleProposal:
    reason = form.given("reason").strip()
    if not reason:
        raise InvalidInput({"reason": ["Say why: whoever approves it reads this."]})
    return services.propose(
        rule_id=row.pk if row else None,
        asked=form.service_arguments() if isinstance(form, ProposeForm) else None,
        reason=reason,
        actor=actor,
        now=now,
    )


def _preview(
    form: ProposeForm, row: Rule | None, actor: Actor, now: datetime
) -> RulePreview | None:
    """Return a preview of the rule from a rolled-back proposal."""
    with discard_writes():
        proposed = services.propose(
            rule_id=row.pk if row else None, asked=form.service_arguments(), actor=actor, now=now
        )
    return queries.preview_now(proposed.after.rule) if proposed.after else None


def _row(rule_id: int) -> Rule:
    row = Rule.objects.filter(pk=rule_id).first()
    if row is None:
        raise Http404
    return row


def _posted(request: PersonRequest) -> QueryDict | None:
    return request.POST if request.method == "POST" else None
