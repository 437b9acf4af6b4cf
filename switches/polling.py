"""How a page stays current: it asks again every two seconds, and mostly hears that nothing is new.

The token is the number of the last audit row. Every change of anything shown here writes one, in
its own transaction and in commit order, so an equal number means an equal page. What instances say
and do writes none: those parts of a page ask by themselves (`switches.views.effect`).
"""

from datetime import datetime
from typing import Any

from django.db.models import DateTimeField, Func
from django.http import HttpResponse
from django.shortcuts import render

from controlplane.core.audit.models import AuditEntry
from controlplane.core.browser import PersonRequest
from controlplane.core.canonical import timestamp
from controlplane.core.clock import db_now


class _ClockTimestamp(Func):
    function = "clock_timestamp"
    output_field = DateTimeField()


def head_and_now() -> tuple[int, datetime]:
    """The number of the last audit row and the database's time, in one query."""
    last = AuditEntry.objects.order_by("-id").values_list("id", _ClockTimestamp()).first()
    if last is None:
        return 0, db_now()
    head, now = last
    return head, now


def unchanged(request: PersonRequest, head: int, now: datetime) -> HttpResponse | None:
    """204 for a poll that has seen `head` already."""
    if not request.htmx or request.GET.get("since") != str(head):
        return None
    return stamped(HttpResponse(status=204), now)


def part(
    request: PersonRequest, template: str, context: dict[str, Any], now: datetime
) -> HttpResponse:
    """The live part of a page, with what stands above it on every page."""
    return stamped(render(request, template, {**context, "oob": True}), now)


def stamped(response: HttpResponse, now: datetime) -> HttpResponse:
    """Tell the page the server's time, for its countdowns and its `as of`."""
    response["Switchgear-Now"] = timestamp(now)
    return response
