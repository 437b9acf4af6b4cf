"""Views of health probes and metrics."""

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe
from rest_framework.request import Request

from controlplane.core import health, metrics
from controlplane.core.errors import Unavailable
from controlplane.core.http import problems
from controlplane.core.http.permissions import read_token
from controlplane.core.http.views import ApiView

UNCACHED = {"Cache-Control": "no-store"}


def make_probe_view(
    report_health: Callable[[], health.Report],
) -> Callable[[HttpRequest], HttpResponse]:
    """Return a view without authentication that responds with a health report."""

    @require_safe
    def view(request: HttpRequest) -> HttpResponse:
        report = report_health()
        response = JsonResponse(dict(report.document), status=report.http_status, headers=UNCACHED)
        return problems.suppress_log(response)

    return view


class MetricsView(ApiView):
    """Prometheus metrics; tokens are checked in memory, without the database."""

    read_scope = "metrics:read"
    schema = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        check, token = metrics.token_check, read_token(request)
        if check is not None and token is not None:
            check(token, self.read_scope)
            return
        if not health.database_answers():
            raise Unavailable(
                "The database, which is needed to check permissions, does not respond."
            )
        super().initial(request, *args, **kwargs)

    def get(self, request: Request) -> HttpResponse:
        exposition = metrics.scrapes.get(request.headers.get("Accept", ""))
        content, headers = exposition.headers(request.headers.get("Accept-Encoding", ""))
        return HttpResponse(content, headers=headers)
