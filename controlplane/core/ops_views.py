"""Health probes and metrics over HTTP."""

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


def probe(ask: Callable[[], health.Report]) -> Callable[[HttpRequest], HttpResponse]:
    """Return a view that responds with a report; probes need no credentials."""

    @require_safe
    def view(request: HttpRequest) -> HttpResponse:
        report = ask()
        answer = JsonResponse(dict(report.document), status=report.http_status, headers=UNCACHED)
        return problems.suppress_log(answer)

    return view


class MetricsView(ApiView):
    """Prometheus metrics; with tokens checked in memory, scrapes work without the database."""

    read_scope = "metrics:read"
    schema = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        check, token = metrics.token_check(), read_token(request)
        if check is not None and token is not None:
            check(token, self.read_scope)
            return
        if not health.database_answers():
            raise Unavailable("The database, which knows who may read this, does not answer.")
        super().initial(request, *args, **kwargs)

    def get(self, request: Request) -> HttpResponse:
        found = metrics.scrape(request.headers.get("Accept", ""))
        content, headers = found.headers(request.headers.get("Accept-Encoding", ""))
        return HttpResponse(content, headers=headers)
