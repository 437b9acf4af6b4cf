"""The page of threshold rules, and the forms to change a rule. Forms show shares in percent."""

from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from django import forms
from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods

from controlplane.core.actors import Actor
from controlplane.core.change_views import ServiceForm, handle_change, submitted_data
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict, InvalidInput
from controlplane.core.http.permissions import actor_of
from controlplane.core.page_responses import PersonRequest, respond_done, show, signed_in
from controlplane.core.reasons import MAX_CHARACTERS
from controlplane.core.threshold_metrics import (
    MILLISECONDS,
    RATIO,
    THRESHOLD_METRICS,
    ThresholdMetric,
    find_metric,
)
from slo.models import ThresholdRule
from slo.objectives.permissions import SCOPE, is_admin, require_admin
from slo.thresholds import rules, services, statuses

from . import responses
from .responses import OptionalReasonForm

FORM = "slo/threshold_form.html"
SEVERITIES = (
    ("critical", "Critical", "pages someone immediately"),
    ("warning", "Warning", "the team responds within half an hour"),
    ("info", "Info", "notifies, without escalation"),
)
UNITS = {RATIO: "%", MILLISECONDS: "ms"}
_HUNDRED = Decimal(100)


class ThresholdForm(ServiceForm):
    name = forms.CharField(max_length=400, required=False)
    title = forms.CharField(max_length=400, required=False)
    part = forms.CharField(max_length=400, required=False)
    statistic = forms.CharField(max_length=40, required=False)
    comparison = forms.CharField(max_length=2, required=False)
    value = forms.CharField(max_length=40, required=False)
    window = forms.CharField(max_length=40, required=False)
    min_events = forms.CharField(max_length=40, required=False)
    severity = forms.CharField(max_length=20, required=False)
    enabled = forms.BooleanField(required=False)
    runbook_url = forms.CharField(max_length=1000, required=False)
    reason = forms.CharField(max_length=MAX_CHARACTERS, required=False)
    version = forms.IntegerField(required=False, min_value=1)

    renamed = {"metric": "part"}

    def to_fields(self, metric_type: ThresholdMetric) -> dict[str, Any]:
        """Return the fields of the rule, not validated; numbers that can't be parsed stay texts."""
        part, min_events = self.get_text("part").strip(), self.get_text("min_events").strip()
        count = min_events.replace(",", "")
        is_count = count.isascii() and count.isdigit() and len(count) < 19
        return {
            "title": self.get_text("title"),
            "metric": f"{metric_type.name}:{part}" if part else metric_type.name,
            "statistic": self.get_text("statistic") or None,
            "window": self.get_text("window").strip() if metric_type.windows else "",
            "comparison": self.get_text("comparison") or None,
            "value": _parse_value(self.get_text("value"), metric_type),
            "min_events": int(count) if is_count else min_events or None,
            "severity": self.get_text("severity"),
            "enabled": bool(self.cleaned_data.get("enabled")),
            "runbook_url": self.get_text("runbook_url"),
        }


@signed_in
@require_GET
def thresholds_page(request: PersonRequest) -> HttpResponse:
    """Show every rule in words, with its status at most ten seconds old."""
    now = db_now()
    found = list(ThresholdRule.objects.order_by("-is_enabled", "name"))
    loaded = statuses.load_statuses(found, now)
    context = {
        "now": now,
        "rules": loaded,
        "firing_total": sum(one.firing_total for one in loaded),
        "may_change": is_admin(actor_of(request)),
    }
    return responses.render_live(request, "thresholds", context)


@signed_in
@require_http_methods(["GET", "POST"])
def create_page(request: PersonRequest) -> HttpResponse:
    """Show the list of metrics or, once `?metric=` names one, the form of a new rule."""
    require_admin(actor_of(request))
    known = find_metric(request.GET.get("metric", ""))
    if known is None:
        context = {"metrics": list(THRESHOLD_METRICS.values())}
        return show(request, "slo/thresholds_new.html", context)
    metric_type = known[0]
    initial = {
        "statistic": metric_type.statistics[0],
        "comparison": metric_type.comparisons[0],
        "window": "5m" if metric_type.windows else "",
        "min_events": "1",
        "severity": "warning",
        "enabled": True,
    }
    form = ThresholdForm(submitted_data(request), initial=initial)
    return _handle_form(request, None, metric_type, form)


@signed_in
@require_http_methods(["GET", "POST"])
def edit_page(request: PersonRequest, name: str) -> HttpResponse:
    require_admin(actor_of(request))
    rule = get_object_or_404(ThresholdRule, name=name)
    known = find_metric(rule.metric)
    if known is None:
        detail = f"{rule.metric} is not measured on this installation. Remove the rule."
        return responses.show_refusal(request, detail, about=ThresholdRule)
    metric_type, part = known
    value = Decimal(repr(rule.value)) * (_HUNDRED if metric_type.unit == RATIO else 1)
    initial = {
        **rules.to_document(rule),
        "name": rule.name,
        "part": part,
        "value": f"{value.normalize():f}",
        "min_events": str(rule.min_events),
        "version": rule.version,
    }
    form = ThresholdForm(submitted_data(request), initial=initial)
    return _handle_form(request, rule, metric_type, form)


@signed_in
@require_http_methods(["GET", "POST"])
def remove_page(request: PersonRequest, name: str) -> HttpResponse:
    require_admin(actor_of(request))
    rule = get_object_or_404(ThresholdRule, name=name)
    form = OptionalReasonForm(submitted_data(request))

    def carry_out(actor: Actor, now: datetime) -> str:
        services.remove_rule(name=name, reason=form.get_text("reason"), actor=actor, now=now)
        return f"{name} removed. Its open alerts resolve within seconds."

    return handle_change(
        request,
        form,
        carry_out,
        scope=SCOPE,
        template="slo/threshold_remove.html",
        context=lambda now: {
            "rule": rule,
            "sentence": rules.describe_rule(rule),
            "open_alerts": statuses.count_open_alerts([name]).get(name, 0),
        },
        back=reverse("thresholds_page"),
        refused=lambda error: responses.show_refusal(request, error.detail, about=ThresholdRule),
    )


def _handle_form(
    request: PersonRequest,
    rule: ThresholdRule | None,
    metric_type: ThresholdMetric,
    form: ThresholdForm,
) -> HttpResponse:
    """Show the form, save the rule, or (button `check`) preview the rule's status."""
    now = db_now()
    more: dict[str, Any] = {}
    status = 422 if form.is_bound else 200
    if form.is_valid():
        name = rule.name if rule else form.get_text("name").strip()
        try:
            if "check" not in request.POST:
                if rule is None:
                    services.require_new(name)
                services.put_rule(
                    name=name,
                    fields=form.to_fields(metric_type),
                    reason=form.get_text("reason"),
                    # Refuse to save if it was changed since the person opened the form.
                    version=form.cleaned_data.get("version") if rule else None,
                    actor=actor_of(request),
                    now=now,
                )
                done = f"{name} saved. It is evaluated within seconds."
                return respond_done(request, done, reverse("thresholds_page"))
            fields = {**form.to_fields(metric_type), "enabled": True}
            preview = ThresholdRule(name=name, changed_at=now)
            rules.apply_document(preview, rules.validate(name, fields))
            more["preview"], status = statuses.compute_status(preview, now), 200
        except InvalidInput as error:
            form.add_service_errors(error.errors)
        except Conflict as conflict:
            more["refused"], status = conflict.detail, 409
    here = reverse("threshold_edit", args=[rule.name]) if rule else reverse("threshold_new")
    context = {
        "form": form,
        "rule": rule,
        "metric": metric_type,
        "here": here if rule else f"{here}?metric={metric_type.name}",
        "statistics": metric_type.statistics if len(metric_type.statistics) > 1 else (),
        "comparisons": [(sign, rules.COMPARISON_WORDS[sign]) for sign in metric_type.comparisons],
        "severities": SEVERITIES,
        "unit": UNITS.get(metric_type.unit, ""),
        **more,
    }
    return show(request, FORM, context, status=status)


def _parse_value(text: str, metric_type: ThresholdMetric) -> float | str | None:
    typed = text.strip().removesuffix("%").replace(",", "").strip()
    if not typed:
        return None
    try:
        number = Decimal(typed)
    except InvalidOperation:
        return text
    if not number.is_finite():
        return text
    return float(number / _HUNDRED if metric_type.unit == RATIO else number)
