"""The deliveries page: messages with their attempts; retry and discard failed ones."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django import forms
from django.db.models import Count
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET, require_POST

from controlplane.core.clock import db_now
from controlplane.core.console_urls import local_path
from controlplane.core.errors import DomainError
from controlplane.core.http.permissions import actor_of
from controlplane.core.message_templates import MESSAGE_TEMPLATES, SEVERITIES
from controlplane.core.outbox import renderer
from controlplane.core.outbox.models import Attempt, OutboxMessage, Pace
from controlplane.core.outbox.renderer import RenderedMessage
from controlplane.core.page_responses import PersonRequest, respond_done, show, signed_in
from controlplane.notify.targets import naming
from controlplane.notify.targets.naming import Named

from . import discards, retries, selection
from .api import ROWS, in_order

PAGE_SIZE = 50
MAX_SUGGESTED = 200
MAX_PLACES = 20


class DeliveryFilters(forms.Form):
    """The filters of the list; invalid values are ignored."""

    state = forms.ChoiceField(
        required=False, choices=[(state, state) for state in OutboxMessage.State.values]
    )
    severity = forms.ChoiceField(required=False, choices=[(name, name) for name in SEVERITIES])
    event = forms.CharField(required=False, max_length=64)
    destination = forms.CharField(required=False, max_length=120)
    before = forms.IntegerField(required=False, min_value=1, max_value=2**62)

    def chosen(self) -> dict[str, Any]:
        self.is_valid()
        return {name: value for name, value in self.cleaned_data.items() if value}


class DiscardForm(forms.Form):
    reason = forms.CharField(max_length=500)


@dataclass(frozen=True)
class Tried:
    """An attempt with its duration in seconds, None until it has ended."""

    attempt: Attempt
    took: float | None


@dataclass(frozen=True)
class Row:
    """A message as shown on the page."""

    message: OutboxMessage
    to: Named
    notice: RenderedMessage
    tries: list[Tried]

    @property
    def page(self) -> str:
        """The path of the page about the message's subject; empty if there is none."""
        path = local_path(self.notice.path)
        return "" if path == "/" else path


@signed_in
@require_GET
def deliveries_page(request: PersonRequest) -> HttpResponse:
    """Show messages, newest first; `before` (an id) keeps pages stable while messages arrive."""
    filters = DeliveryFilters(request.GET)
    wanted = filters.chosen()
    found = selection.matching(ROWS, wanted).order_by("-id")
    if "before" in wanted:
        found = found.filter(pk__lt=wanted["before"])
    shown = list(found[: PAGE_SIZE + 1])
    messages = shown[:PAGE_SIZE]
    context = {
        "filters": filters,
        "state": wanted.get("state", ""),
        "wanted": wanted,
        "narrowed": [name for name in wanted if name not in ("before", "state")],
        "rows": _rows(messages),
        "older": messages[-1].pk if len(shown) > PAGE_SIZE else None,
        "newest": "before" not in wanted,
        "counts": selection.counts(),
        "given_up": _given_up() if wanted.get("state") in (None, "failed") else [],
        "suggested": _suggested(),
        "severities": SEVERITIES,
        "now": db_now(),
    }
    return render(request, "core/deliveries.html", context)


@signed_in
@require_GET
def delivery_page(request: PersonRequest, delivery_id: int) -> HttpResponse:
    """Show one message with all its attempts."""
    message = ROWS.filter(pk=delivery_id).first()
    if message is None:
        raise Http404
    (row,) = _rows([message])
    return show(request, "core/delivery.html", {"row": row, "open": True, "now": db_now()})


@signed_in
@require_POST
def retry(request: PersonRequest, delivery_id: int) -> HttpResponse:
    try:
        retries.retry(message_id=delivery_id, actor=actor_of(request), now=db_now())
    except DomainError as error:
        return _refused(request, "Not sent again", error)
    return respond_done(request, "It is sent again.", f"/deliveries/{delivery_id}/")


@signed_in
@require_POST
def discard(request: PersonRequest, delivery_id: int) -> HttpResponse:
    """Discard a failed message, with a reason."""
    asked = DiscardForm(request.POST)
    try:
        asked.is_valid()
        discards.discard(
            message_id=delivery_id,
            reason=asked.cleaned_data.get("reason", ""),
            actor=actor_of(request),
            now=db_now(),
        )
    except DomainError as error:
        return _refused(request, "Not discarded", error)
    return respond_done(request, "It is discarded.", f"/deliveries/{delivery_id}/")


@signed_in
@require_POST
def retry_all(request: PersonRequest) -> HttpResponse:
    """Retry the failed messages of one destination, up to the maximum at once."""
    destination = request.POST.get("destination", "").replace("\x00", "")[:120]
    try:
        retried, left = retries.retry_all(
            destination=destination, actor=actor_of(request), now=db_now()
        )
    except DomainError as error:
        return _refused(request, "Not sent again", error)
    said = f"{retried} sent again." + (f" {left} more failed there; press again." if left else "")
    return respond_done(request, said, "/deliveries/")


def _refused(request: PersonRequest, heading: str, error: DomainError) -> HttpResponse:
    context = {"heading": heading, "detail": error.detail, "back": "deliveries_page"}
    return show(request, "core/notice.html", context, status=error.status)


def _rows(messages: Iterable[OutboxMessage]) -> list[Row]:
    rows = list(messages)
    names = naming.named(row.destination for row in rows)
    return [
        Row(
            row,
            names[row.destination],
            renderer.render(row.event, row.payload),
            [Tried(one, _took(one)) for one in in_order(row)],
        )
        for row in rows
    ]


def _took(attempt: Attempt) -> float | None:
    if attempt.finished_at is None:
        return None
    return (attempt.finished_at - attempt.started_at).total_seconds()


def _given_up() -> list[tuple[Named, int]]:
    """Return the destinations with failed messages and their counts, most first."""
    failed = OutboxMessage.objects.filter(selection.GIVEN_UP).values_list("destination")
    found = list(failed.annotate(count=Count("pk")).order_by("-count", "destination")[:MAX_PLACES])
    names = naming.named(destination for destination, _ in found)
    return [(names[destination], count) for destination, count in found]


def _suggested() -> dict[str, list[str]]:
    """Return filter suggestions: the names of destinations used so far, and known events."""
    used = Pace.objects.order_by("destination").values_list("destination", flat=True)
    names = naming.named(used[:MAX_SUGGESTED])
    places = {one.name or one.destination for one in names.values()}
    return {"destinations": sorted(places), "events": sorted(MESSAGE_TEMPLATES)}
