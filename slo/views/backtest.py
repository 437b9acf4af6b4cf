"""The backtest page: when rules would have fired over the past days."""

from django.http import HttpResponse
from django.views.decorators.http import require_http_methods

from controlplane.core.clock import db_now
from controlplane.core.durations import parse
from controlplane.core.errors import InvalidInput
from controlplane.core.http.permissions import actor_of
from controlplane.core.page_responses import PersonRequest, show, signed_in
from slo.backtests import trials
from slo.backtests.replay import limit_backtests
from slo.objectives import documents, services

from .drafts import Draft

SPANS = {"24h": "a day", "7d": "a week", "30d": "30 days"}
USUAL = "7d"


@signed_in
@require_http_methods(["GET", "POST"])
def backtest(request: PersonRequest, name: str) -> HttpResponse:
    """Show a backtest of the present rules, or of a posted form; nothing is saved.

    Posted from the form itself, it opens in a dialog.
    """
    slo = services.find_slo(name)
    actor_of(request).require("slo:read")
    given = request.POST or request.GET
    present = Draft.of({**documents.to_document(slo), "name": slo.name})
    draft = Draft.posted(request.POST).named(slo.name) if request.method == "POST" else present
    span = given.get("span", "")
    span = span if span in SPANS else USUAL
    context = {
        "slo": slo,
        "draft": draft,
        "span": span,
        "spans": SPANS.items(),
        "hidden": list(draft.hidden()),
        "is_changed": draft != present,
    }
    fields = draft.document()
    fields.pop("name")
    try:
        objective = documents.to_objective(documents.validate(name, fields))
    except InvalidInput as error:
        context |= {"errors": error.errors}
        return show(request, "slo/backtest.html", context, status=422)
    with limit_backtests(actor_of(request)):
        found = trials.run_trials(slo, objective, parse(span), db_now())
    return show(request, "slo/backtest.html", {**context, "tried": found})
