"""Form pages that retry, discard, reveal or restore a letter, also shown in a dialog."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from django import forms
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from breakers.dead_letters.bulk import breaker_gates
from breakers.dead_letters.models import Departure, LetterStream
from breakers.dead_letters.removals import actions, execution, restoration, reveal, settlement
from breakers.states import dependency_status
from breakers.states.dependency_status import DependencyStatus
from controlplane.core.change_views import ServiceForm, attempt_change, submitted_data
from controlplane.core.clock import db_now
from controlplane.core.errors import DomainError, Unavailable
from controlplane.core.http.permissions import actor_of
from controlplane.core.page_responses import (
    PersonRequest,
    is_in_dialog,
    redirect_done,
    show,
    signed_in,
)
from controlplane.core.problem import problem_headers
from controlplane.core.reasons import MAX_CHARACTERS
from controlplane.core.roles import Power

from . import letter, payload
from .stream import find_stream_or_404

MANY_RETRIES = 3
"""Number of retries after which another retry is unlikely to help."""
REASON_TEXTS: Mapping[str, Mapping[str, str]] = {
    "retry": {
        "placeholder": "oracle is back since 03:10, INC-4411",
        "hint": "What has changed since it failed. Stored with the letter.",
    },
    "discard": {
        "placeholder": "The order was cancelled by the customer, INC-4411",
        "hint": "Why it is no longer needed. Stored with the letter.",
    },
    "restore": {
        "placeholder": "Discarded by mistake with the others, INC-4411",
        "hint": "Stored with the letter.",
    },
    "reveal": {
        "placeholder": "The customer's id is in the token, INC-4411",
        "hint": "Recorded in the audit trail.",
    },
}
"""Example and explanation of the reason, by action."""


class LetterReasonForm(ServiceForm):
    reason = forms.CharField(max_length=MAX_CHARACTERS * 2, required=False)


@signed_in
@require_http_methods(["GET", "POST"])
def retry_letter(request: PersonRequest, server: str, entry_id: str, name: str) -> HttpResponse:
    now = db_now()
    stream, actor = find_stream_or_404(server, name, now), actor_of(request)
    settlement.require_authority(actor, actions.RETRY, stream)

    def act(reason: str) -> HttpResponse:
        done = actions.retry(stream=stream, entry_id=entry_id, reason=reason, actor=actor, now=now)
        text = f"Sent to {stream.origin} as {done['new_id']}."
        return redirect_done(request, text, stream.letter_url(entry_id))

    context: dict[str, Any] = {
        "troubled": find_unhealthy_consumers(stream, now),
        "delivery": execution.delivery_guarantee(stream),
    }
    if request.method == "GET":
        # The warning about earlier retries is left out if the letter can't be read.
        with suppress(DomainError):
            entry = letter.read_letter(stream, entry_id, payload.PAGE_LIMITS)
            context |= {"retries": entry.retries if entry else 0, "often": MANY_RETRIES}
    return _confirm(request, stream, entry_id, "retry", act, context)


@signed_in
@require_http_methods(["GET", "POST"])
def discard_letter(request: PersonRequest, server: str, entry_id: str, name: str) -> HttpResponse:
    now = db_now()
    stream, actor = find_stream_or_404(server, name, now), actor_of(request)
    settlement.require_authority(actor, actions.DISCARD, stream)

    def act(reason: str) -> HttpResponse:
        actions.discard(stream=stream, entry_id=entry_id, reason=reason, actor=actor, now=now)
        text = f"Discarded {entry_id}. It can be restored for 30 days."
        return redirect_done(request, text, stream.letter_url(entry_id))

    return _confirm(request, stream, entry_id, "discard", act)


@signed_in
@require_http_methods(["GET", "POST"])
def restore_letter(request: PersonRequest, departure_id: int) -> HttpResponse:
    rows = Departure.objects.without_payload().select_related("stream")
    departure, actor, now = get_object_or_404(rows, pk=departure_id), actor_of(request), db_now()
    settlement.require_authority(actor, actions.RETRY, departure.stream)
    stream, archive_url = departure.stream, reverse("archived_letter_page", args=[departure_id])

    def act(reason: str) -> HttpResponse:
        restoration.restore_letter(departure_id=departure_id, reason=reason, actor=actor, now=now)
        back = Departure.objects.without_payload().get(pk=departure_id)
        is_back = back.state == Departure.State.RESTORED and back.new_id
        url = stream.letter_url(back.new_id) if is_back else archive_url
        text = f"Restored in {stream.name} as {back.new_id}."
        return redirect_done(request, text, url)

    context = {"left": departure, "back": archive_url}
    return _confirm(request, stream, departure.entry_id, "restore", act, context)


@signed_in
@require_http_methods(["GET", "POST"])
def reveal_letter(request: PersonRequest, server: str, entry_id: str, name: str) -> HttpResponse:
    """Show the letter's page without redaction.

    The page has no URL of its own, so a person has to give a reason each time.
    """
    now = db_now()
    stream, actor = find_stream_or_404(server, name, now), actor_of(request)
    actor.require_power(Power.ADMINISTER)

    def act(reason: str) -> HttpResponse:
        entry = letter.truncate_for_page(
            reveal.reveal_letter(
                stream=stream, entry_id=entry_id, actor=actor, now=now, reason=reason
            )
        )
        context = letter.letter_context(request, stream, entry, now, revealed=True)
        context["reveal_reason"] = reason
        return render(request, "breakers/dead_letters/letter.html", context)

    return _confirm(request, stream, entry_id, "reveal", act)


@signed_in
@require_http_methods(["GET", "POST"])
def reveal_archived(request: PersonRequest, departure_id: int) -> HttpResponse:
    """Show the page of an archived letter without redaction."""
    now, actor = db_now(), actor_of(request)
    actor.require_power(Power.ADMINISTER)
    departure = get_object_or_404(Departure.objects.select_related("stream"), pk=departure_id)

    def act(reason: str) -> HttpResponse:
        reveal.reveal_archived(departure_id=departure_id, actor=actor, now=now, reason=reason)
        context = letter.archived_context(request, departure, now, revealed=True)
        return render(request, "breakers/dead_letters/archived_letter.html", context)

    context = {"back": reverse("archived_letter_page", args=[departure_id])}
    return _confirm(request, departure.stream, departure.entry_id, "reveal", act, context)


def _confirm(
    request: PersonRequest,
    stream: LetterStream,
    entry_id: str,
    verb: str,
    act: Callable[[str], HttpResponse],
    context: Mapping[str, Any] | None = None,
) -> HttpResponse:
    """Show a form that asks for a reason; once it is submitted, call `act` with the reason.

    After an error, the form keeps its input.
    """
    form = LetterReasonForm(submitted_data(request))
    answer = attempt_change(
        form,
        lambda: act(form.get_text("reason")),
        lambda error: render_refusal(request, stream, entry_id, error),
    )
    if answer is not None:
        return answer
    shown = {
        "stream": stream,
        "entry_id": entry_id,
        "verb": verb,
        "back": stream.letter_url(entry_id),
        "form": form,
        **REASON_TEXTS[verb],
        **(context or {}),
    }
    status = 422 if form.is_bound else 200
    return show(request, "breakers/dead_letters/letter_action.html", shown, status=status)


def render_refusal(
    request: PersonRequest, stream: LetterStream, entry_id: str, error: DomainError
) -> HttpResponse:
    """Render a page that says why the action was not carried out."""
    context = {
        "heading": "Not done" if isinstance(error, Unavailable) else "Nothing changed",
        "detail": error.detail,
        "url": stream.letter_url(entry_id) if entry_id else stream.page_url,
    }
    # A dialog shows the page only for a 409; for other errors it shows a toast without the reason.
    status = 409 if is_in_dialog(request) else error.status
    response = show(request, "breakers/dead_letters/notice.html", context, status=status)
    for name, value in problem_headers(error).items():
        response[name] = value
    return response


def find_unhealthy_consumers(stream: LetterStream, now: datetime) -> list[DependencyStatus]:
    """Return the consumers of the stream's origin whose breakers are not closed."""
    names = breaker_gates.find_consumer_dependencies(stream)
    statuses = dependency_status.load_statuses(dependency_status.find_by_names(names), now)
    unhealthy = (dependency_status.OPEN, dependency_status.HALF_OPEN)
    return [one for one in statuses if one.state in unhealthy]
