"""Polling of live pages: every two seconds, usually answered by 204.

The token is the number of the last audit row. Every change of anything shown writes one, in its own
transaction and in commit order, so an equal number means an equal page. Reports of instances write
none; those parts of a page poll by themselves (`switches.views.effect`).
"""

from datetime import datetime
from typing import Any

from django.db.models import DateTimeField, Func
from django.http import HttpResponse
from django.shortcuts import render

from controlplane.core.audit.models import AuditEntry
from controlplane.core.canonical import timestamp
from controlplane.core.clock import db_now
from controlplane.core.page_responses import PersonRequest


class _ClockTimestamp(Func):
    function = "clock_timestamp"
    output_field = DateTimeField()


def head_and_now() -> tuple[int, datetime]:
    """Return the number of the last audit row and the database's time, by one query."""
    last = AuditEntry.objects.order_by("-id").values_list("id", _ClockTimestamp()).first()
    if last is None:
        return 0, db_now()
    head, now = last
    return head, now


def unchanged(request: PersonRequest, head: int, now: datetime) -> HttpResponse | None:
    """Return a 204 response if the poll has seen `head` already, else None."""
    if not request.htmx or request.GET.get("since") != str(head):
        return None
    return stamp_server_time(HttpResponse(status=204), now)


def render_part(
    request: PersonRequest, template: str, context: dict[str, Any], now: datetime
) -> HttpResponse:
    """Render the live part of a page, with the parts above it that every page has."""
    return stamp_server_time(render(request, template, {**context, "oob": True}), now)


def stamp_server_time(response: HttpResponse, now: datetime) -> HttpResponse:
    """Add the server's time to a response, for countdowns and `as of`."""
    response["Switchgear-Now"] = timestamp(now)
    return response
