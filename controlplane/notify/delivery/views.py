"""The deliveries page: messages with their attempts; retry or discard failed ones."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django import forms
from django.db.models import Count
from django.http import Http404, HttpResponse
from django.shortcuts import render

from controlplane.core.clock import db_now
from controlplane.core.console_urls import local_path
from controlplane.core.errors import DomainError
from controlplane.core.http.permissions import actor_of
from controlplane.core.message_templates import MESSAGE_TEMPLATES, SEVERITIES
from controlplane.core.outbox import renderer
from controlplane.core.outbox.models import Attempt, OutboxMessage, Pace
from controlplane.core.outbox.renderer import RenderedMessage
from controlplane.core.outbox.services import MAX_KEY_LENGTH
from controlplane.core.page_responses import (
    PersonRequest,
    is_in_dialog,
    page_view,
    respond_done,
    show,
    show_refusal,
)
from controlplane.notify.targets import destination_names
from controlplane.notify.targets.destination_names import DestinationName

from . import failed_messages, selection, statements
from .api import ROWS, list_attempts

PAGE_SIZE = 50
MAX_SUGGESTED = 200
MAX_PLACES = 20


class DeliveryFilterForm(forms.Form):
    """Form with the filters of the deliveries page; invalid values are ignored."""

    state = forms.ChoiceField(
        required=False, choices=[(state, state) for state in OutboxMessage.State.values]
    )
    severity = forms.ChoiceField(required=False, choices=[(name, name) for name in SEVERITIES])
    event = forms.CharField(required=False, max_length=64)
    destination = forms.CharField(required=False, max_length=120)
    before = forms.IntegerField(required=False, min_value=1, max_value=2**62)

    def get_filters(self) -> dict[str, Any]:
        self.is_valid()
        return {name: value for name, value in self.cleaned_data.items() if value}


class DiscardForm(forms.Form):
    reason = forms.CharField(max_length=500)


# Icon, word and tone by state.
BADGES = {
    "pending": ("clock", "Pending", "pending"),
    "sent": ("check", "Sent", "released"),
    "failed": ("warning", "Failed", "overdue"),
    "superseded": ("close", "Superseded", "quiet"),
    "discarded": ("close", "Discarded", "quiet"),
}

PAGE_NAMES = {
    "alerts": "alert",
    "approvals": "approvals",
    "attention": "Needs attention",
    "audit": "audit trail",
    "breakers": "breakers",
    "dead-letters": "dead letters",
    "deliveries": "deliveries",
    "drills": "drills",
    "jobs": "jobs",
    "people": "person",
    "ramps": "ramp",
    "reports": "weekly report",
    "slos": "SLO",
    "switches": "switch",
}
"""Names of the pages that messages lead to, by the first part of the path."""


@dataclass(frozen=True)
class DeliveryRow:
    message: OutboxMessage
    to: DestinationName
    notice: RenderedMessage
    tries: list[tuple[Attempt, float | None]]
    """Attempts with their duration in seconds, None until they have ended."""

    @property
    def badge(self) -> tuple[str, str, str]:
        """The icon, word and tone of the message's state."""
        state = "discarded" if self.message.discarded_at else self.message.state
        return BADGES.get(state, BADGES["pending"])

    @property
    def about(self) -> str:
        """The message's subject as screens show it: of a dependency, its name `core → oracle`."""
        kind, _, name = self.message.subject.partition(":")
        return name.replace("->", " → ") if kind == "dependency" else self.message.subject

    @property
    def page(self) -> str:
        """The path of the page about the message's subject; empty if there is none."""
        path = local_path(self.notice.path)
        return "" if path == "/" else path

    @property
    def page_name(self) -> str:
        return PAGE_NAMES.get(self.page.split("/", 2)[1], "page") if self.page else ""


@page_view("GET")
def deliveries_page(request: PersonRequest) -> HttpResponse:
    """Show messages, newest first: those older than the message with the id `before`, if given."""
    filters = DeliveryFilterForm(request.GET)
    chosen = filters.get_filters()
    found = selection.filter_messages(ROWS, chosen).order_by("-id")
    if "before" in chosen:
        found = found.filter(pk__lt=chosen["before"])
    shown = list(found[: PAGE_SIZE + 1])
    messages = shown[:PAGE_SIZE]
    context = {
        "filters": filters,
        "state": chosen.get("state", ""),
        "wanted": chosen,
        "narrowed": [name for name in chosen if name not in ("before", "state")],
        "rows": _make_rows(messages),
        "older": messages[-1].pk if len(shown) > PAGE_SIZE else None,
        "newest": "before" not in chosen,
        "counts": selection.count_messages(),
        "absence": "" if messages or chosen else statements.describe_absence(db_now()),
        "given_up": _count_failed() if chosen.get("state") in (None, "failed") else [],
        "suggested": _suggest_filters(),
        "severities": SEVERITIES,
        "now": db_now(),
    }
    return render(request, "core/deliveries.html", context)


@page_view("GET")
def delivery_page(request: PersonRequest, delivery_id: int) -> HttpResponse:
    message = ROWS.filter(pk=delivery_id).first()
    if message is None:
        raise Http404
    (row,) = _make_rows([message])
    return show(request, "core/delivery.html", {"row": row, "open": True, "now": db_now()})


@page_view("GET")
def event_deliveries_page(request: PersonRequest) -> HttpResponse:
    """Show to whom one event was delivered: the page, or the part that htmx refreshes."""
    event_key = request.GET.get("event_key", "").replace("\x00", "")[:MAX_KEY_LENGTH]
    context = statements.event_context(event_key, db_now())
    context["target"] = request.GET.get("target", "")[:80]
    if request.htmx and not is_in_dialog(request):
        return render(request, "core/_delivery_statement.html", context)
    return show(request, "core/event_deliveries.html", context)


@page_view("POST")
def retry_view(request: PersonRequest, delivery_id: int) -> HttpResponse:
    try:
        failed_messages.retry_message(message_id=delivery_id, actor=actor_of(request), now=db_now())
    except DomainError as error:
        return show_refusal(request, "Not retried", error, "deliveries_page")
    return respond_done(request, "Retry started.", f"/deliveries/{delivery_id}/")


@page_view("POST")
def discard_view(request: PersonRequest, delivery_id: int) -> HttpResponse:
    form = DiscardForm(request.POST)
    try:
        form.is_valid()
        failed_messages.discard_message(
            message_id=delivery_id,
            reason=form.cleaned_data.get("reason", ""),
            actor=actor_of(request),
            now=db_now(),
        )
    except DomainError as error:
        return show_refusal(request, "Not discarded", error, "deliveries_page")
    return respond_done(request, "Message discarded.", f"/deliveries/{delivery_id}/")


@page_view("POST")
def retry_all_view(request: PersonRequest) -> HttpResponse:
    destination = request.POST.get("destination", "").replace("\x00", "")[:120]
    try:
        retried, left = failed_messages.retry_destination(
            destination=destination, actor=actor_of(request), now=db_now()
        )
    except DomainError as error:
        return show_refusal(request, "Not retried", error, "deliveries_page")
    noun = "retry" if retried == 1 else "retries"
    text = f"{retried} {noun} started."
    text += (
        f" {left} more failed messages of this destination are left; retry again." if left else ""
    )
    return respond_done(request, text, "/deliveries/")


def _make_rows(messages: Iterable[OutboxMessage]) -> list[DeliveryRow]:
    rows = list(messages)
    names = destination_names.name_destinations(row.destination for row in rows)
    return [
        DeliveryRow(
            row,
            names[row.destination],
            renderer.render(row.event, row.payload),
            [
                (
                    one,
                    (one.finished_at - one.started_at).total_seconds() if one.finished_at else None,
                )
                for one in list_attempts(row)
            ],
        )
        for row in rows
    ]


def _count_failed() -> list[tuple[DestinationName, int]]:
    failed = OutboxMessage.objects.filter(selection.GIVEN_UP).values_list("destination")
    found = list(failed.annotate(count=Count("pk")).order_by("-count", "destination")[:MAX_PLACES])
    names = destination_names.name_destinations(destination for destination, _ in found)
    return [(names[destination], count) for destination, count in found]


def _suggest_filters() -> dict[str, list[str]]:
    used = Pace.objects.order_by("destination").values_list("destination", flat=True)
    names = destination_names.name_destinations(used[:MAX_SUGGESTED]).values()
    labels = {one.name or one.destination for one in names}
    return {"destinations": sorted(labels), "events": sorted(MESSAGE_TEMPLATES)}
