"""Responses for pages that poll every two seconds, usually with 204 No Content.

The poll token has the id of the last audit row. Every displayed change writes an audit row in its
own transaction and in commit order, so an equal id means an unchanged page. A token that also has
the minute is for pages with texts that time alone changes, such as a date that has passed. Instance
reports write no audit row; the parts of a page that show them poll separately
(:mod:`switches.views.effect`).
"""

from datetime import datetime
from typing import Any, TypeVar

from django.db.models import DateTimeField, Func, Model, QuerySet
from django.http import HttpResponse

from controlplane.core.audit.models import AuditEntry
from controlplane.core.canonical import timestamp
from controlplane.core.clock import db_now
from controlplane.core.page_responses import PersonRequest, render_live

Row = TypeVar("Row", bound=Model)


class _ClockTimestamp(Func):
    function = "clock_timestamp"
    output_field = DateTimeField()


def parse_id(text: str) -> int | None:
    """Return the id in a query parameter or form field, or None if it is no id."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def take_page(rows: QuerySet[Row], size: int) -> tuple[list[Row], int | None]:
    """Return the first `size` rows, and the last one's id if more rows follow, else None."""
    found = list(rows[: size + 1])
    return found[:size], found[size - 1].pk if len(found) > size else None


def read_head_and_time() -> tuple[int, datetime]:
    """Return the id of the last audit row and the database's time, in one query."""
    last = AuditEntry.objects.order_by("-id").values_list("id", _ClockTimestamp()).first()
    if last is None:
        return 0, db_now()
    head, now = last
    return head, now


def build_minute_token(head: int, now: datetime) -> str:
    """Return a poll token that also changes each minute."""
    return f"{head}-{int(now.timestamp()) // 60}"


def respond_if_unchanged(
    request: PersonRequest, head: int | str, now: datetime
) -> HttpResponse | None:
    """Return a 204 response if `head`, the poll token, is the request's `since`; else None."""
    if not request.htmx or request.GET.get("since") != str(head):
        return None
    return respond_nothing_new(now)


def render_page(request: PersonRequest, name: str, context: dict[str, Any]) -> HttpResponse:
    """Render a live page; for htmx, its live part with updates of the shared page header."""
    if not request.htmx:
        return render_live(request, f"switches/{name}.html", context)
    return render_live(request, f"switches/_{name}.html", {**context, "oob": True})


def respond_nothing_new(now: datetime) -> HttpResponse:
    """Return a 204 response with the server's time, for countdowns."""
    return HttpResponse(status=204, headers={"Switchgear-Now": timestamp(now)})
