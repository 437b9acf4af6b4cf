"""The page of threshold rules, and the forms to change one."""

from datetime import datetime
from typing import Any

from django.http import Http404, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods

from controlplane.core.actors import Actor
from controlplane.core.change_views import handle_change, submitted_data
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict, InvalidInput
from controlplane.core.http.permissions import actor_of
from controlplane.core.page_responses import PersonRequest, respond_done, show, signed_in
from controlplane.core.threshold_metrics import THRESHOLD_METRICS, ThresholdMetric, find_metric
from slo.models import ThresholdRule
from slo.objectives.permissions import SCOPE, is_admin, require_admin
from slo.thresholds import rules, services, statuses

from . import live_page, threshold_form
from .forms import OptionalReasonForm
from .threshold_form import ThresholdForm

FORM = "slo/thresholds_form.html"


@signed_in
@require_GET
def thresholds_page(request: PersonRequest) -> HttpResponse:
    """Show every rule in words, with its status at most ten seconds old."""
    now = db_now()
    found = list(ThresholdRule.objects.order_by("-is_enabled", "name"))
    stand = statuses.load_statuses(found, now)
    context = {
        "now": now,
        "rules": stand,
        "beyond": sum(one.firing_total for one in stand),
        "may_change": is_admin(actor_of(request)),
    }
    return live_page.render_live(request, "thresholds", context)


@signed_in
@require_http_methods(["GET", "POST"])
def new(request: PersonRequest) -> HttpResponse:
    """Show the choice of a metric first, then the form."""
    require_admin(actor_of(request))
    known = find_metric(request.GET.get("metric", ""))
    if known is None:
        context = {"measures": list(THRESHOLD_METRICS.values())}
        return show(request, "slo/thresholds_new.html", context)
    form = ThresholdForm(submitted_data(request), initial=threshold_form.new_rule_initial(known[0]))
    return _edit(request, None, known[0], form)


@signed_in
@require_http_methods(["GET", "POST"])
def edit(request: PersonRequest, name: str) -> HttpResponse:
    require_admin(actor_of(request))
    rule = _rule(name)
    known = find_metric(rule.metric)
    if known is None:
        return _show_refusal(request, f"{rule.metric} is measured by nobody here; remove the rule.")
    form = ThresholdForm(submitted_data(request), initial=threshold_form.rule_initial(rule))
    return _edit(request, rule, known[0], form)


@signed_in
@require_http_methods(["GET", "POST"])
def remove(request: PersonRequest, name: str) -> HttpResponse:
    require_admin(actor_of(request))
    rule = _rule(name)
    form = OptionalReasonForm(submitted_data(request))

    def carry_out(actor: Actor, now: datetime) -> str:
        services.remove_rule(name=name, reason=form.given("reason"), actor=actor, now=now)
        return f"{name} is removed; what is open of it ends within seconds."

    return handle_change(
        request,
        form,
        carry_out,
        scope=SCOPE,
        template="slo/thresholds_remove.html",
        context=lambda now: {
            "rule": rule,
            "sentence": rules.describe_rule(rule),
            "open_alerts": statuses.count_open_alerts([name]).get(name, 0),
        },
        back=reverse("thresholds_page"),
        refused=lambda error: _show_refusal(request, error.detail),
    )


def _edit(
    request: PersonRequest,
    rule: ThresholdRule | None,
    measure: ThresholdMetric,
    form: ThresholdForm,
) -> HttpResponse:
    """Show the form, save it, or (`check`) only show what the rule would find now."""
    actor, now = actor_of(request), db_now()
    more: dict[str, Any] = {}
    status = 422 if form.is_bound else 200
    if form.is_valid():
        name = rule.name if rule else form.given("name").strip()
        try:
            if "check" in request.POST:
                more["outlook"], status = _outlook(name, form, measure, now), 200
            else:
                return _save(request, name, rule, form, measure, actor, now)
        except InvalidInput as error:
            form.add_service_errors(error.errors)
        except Conflict as conflict:
            more["refused"], status = conflict.detail, 409
    here = reverse("threshold_edit", args=[rule.name]) if rule else reverse("threshold_new")
    context = {
        "form": form,
        "rule": rule,
        "measure": measure,
        "here": here if rule else f"{here}?metric={measure.name}",
        **threshold_form.form_choices(measure),
        **more,
    }
    return show(request, FORM, context, status=status)


def _save(
    request: PersonRequest,
    name: str,
    rule: ThresholdRule | None,
    form: ThresholdForm,
    measure: ThresholdMetric,
    actor: Actor,
    now: datetime,
) -> HttpResponse:
    """Save the form unless somebody else saved since it was opened."""
    if rule is None:
        services.require_new(name)
    services.put_rule(
        name=name,
        fields=form.asked(measure),
        reason=form.given("reason"),
        version=form.cleaned_data.get("version") if rule else None,
        actor=actor,
        now=now,
    )
    return respond_done(request, f"{name} is saved; it is looked at within seconds.", _page())


def _outlook(
    name: str, form: ThresholdForm, measure: ThresholdMetric, now: datetime
) -> statuses.ThresholdStatus:
    """Return what the rule would find now, as if enabled; nothing is saved."""
    document = rules.validate(name, {**form.asked(measure), "enabled": True})
    rule = ThresholdRule(name=name, changed_at=now)
    rules.apply_document(rule, document)
    return statuses.compute_status(rule, now)


def _rule(name: str) -> ThresholdRule:
    rule = ThresholdRule.objects.filter(name=name).first()
    if rule is None:
        raise Http404
    return rule


def _show_refusal(request: PersonRequest, detail: str) -> HttpResponse:
    context = {"heading": "Nothing was changed", "detail": detail, "back": _page()}
    return show(request, "slo/thresholds_notice.html", context, status=409)


def _page() -> str:
    return reverse("thresholds_page")
