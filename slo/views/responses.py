"""Responses and forms shared by the SLO pages."""

from typing import Any

from django import forms
from django.db.models import Model
from django.http import HttpResponse

from controlplane.core import page_responses
from controlplane.core.change_views import ServiceForm
from controlplane.core.page_responses import PersonRequest, show
from controlplane.core.reasons import MAX_CHARACTERS
from slo.models import Slo, ThresholdRule

PART = "live"


def is_part(request: PersonRequest) -> bool:
    return bool(request.htmx) and request.htmx.target == PART


def render_live(request: PersonRequest, name: str, context: dict[str, Any]) -> HttpResponse:
    """Render the page `slo/<name>.html`, or for htmx only its live part `slo/_<name>.html`."""
    part = is_part(request)
    template = f"slo/{'_' if part else ''}{name}.html"
    return page_responses.render_live(request, template, {**context, "live": True, "oob": part})


def show_refusal(
    request: PersonRequest, detail: str, slo: Slo | None = None, *, about: type[Model] = Slo
) -> HttpResponse:
    """Show the reason `detail` why nothing was changed.

    The page links to `slo`, or to the page of all SLOs or (by `about`) of all threshold rules.
    """
    is_threshold = about is ThresholdRule
    context = {"heading": "Nothing changed", "detail": detail, "slo": slo}
    return show(request, "slo/notice.html", context | {"is_threshold": is_threshold}, status=409)


class OptionalReasonForm(ServiceForm):
    renamed = {"comment": "reason"}

    reason = forms.CharField(max_length=MAX_CHARACTERS, required=False)
