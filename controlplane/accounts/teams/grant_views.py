"""Page to ask the owner of a resource for an action on it."""

from django import forms
from django.http import HttpResponse
from django.urls import reverse

from controlplane.core import authority, reasons
from controlplane.core.actions import Action
from controlplane.core.change_views import ServiceForm, attempt_change, submitted_data
from controlplane.core.clock import db_now
from controlplane.core.errors import DomainError, InvalidInput
from controlplane.core.http.permissions import actor_of
from controlplane.core.outbox import router
from controlplane.core.page_responses import (
    PersonRequest,
    page_view,
    respond_done,
    show,
    show_refusal,
)

from . import grants
from .state import PHRASES

BACK = "approvals_page"


class AskForm(ServiceForm):
    reason = forms.CharField(max_length=reasons.MAX_CHARACTERS * 2, required=False)


@page_view("GET", "POST")
def ask_page(request: PersonRequest) -> HttpResponse:
    """Show the form to ask for the `action` on the `resource` of the query; on POST, ask."""
    actor, now = actor_of(request), db_now()
    actor.require("switches:write")
    wanted, resource = _read_query(request)
    form = AskForm(submitted_data(request))

    def ask() -> HttpResponse:
        approval = grants.ask(
            action=wanted, resource=resource, reason=form.get_text("reason"), actor=actor, now=now
        )
        message = f"Asked: {approval.summary}. Once it is approved, repeat the action."
        return respond_done(request, message, reverse(BACK))

    def refuse(error: DomainError) -> HttpResponse:
        return show_refusal(request, "Not asked", error, BACK)

    if done := attempt_change(form, ask, refuse):
        return done
    decision = authority.decide(actor, wanted, resource)
    context = {
        "form": form,
        "resource": resource,
        "phrase": PHRASES[wanted],
        "decision": decision,
        "approvers": authority.who_may(Action.APPROVE, resource, but=request.user.pk),
        "on_call": decision.owner and router.find_on_call(decision.owner.slug, now),
        "url": reverse("ask_page", query={"action": wanted.value, "resource": resource}),
        "now": now,
    }
    return show(request, "core/ask.html", context, status=422 if form.is_bound else 200)


def _read_query(request: PersonRequest) -> tuple[Action, str]:
    action, resource = (request.GET.get(name, "") for name in ("action", "resource"))
    problem = grants.find_resource_problem(resource)
    if action not in set(Action) or problem:
        raise InvalidInput({"resource": [problem or "The action of this link doesn't exist."]})
    return Action(action), resource
