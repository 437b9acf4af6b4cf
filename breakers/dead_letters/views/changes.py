"""Forms that retry, discard, reveal or restore a letter.

Each is a page of its own, and the same form in the dialog.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods
from django_htmx.http import HttpResponseClientRedirect

from breakers.dead_letters.bulk import breaker_gates
from breakers.dead_letters.letters import ids
from breakers.dead_letters.models import Departure, LetterStream
from breakers.dead_letters.removals import (
    actions,
    restoration,
    settlement,
)
from breakers.dead_letters.removals import (
    reveal as revealing,
)
from breakers.models import Dependency
from breakers.states import dependency_status
from breakers.states.dependency_status import DependencyStatus
from controlplane.core.actors import Actor
from controlplane.core.change_views import attempt_change, submitted_data
from controlplane.core.clock import db_now
from controlplane.core.errors import DomainError, Unavailable
from controlplane.core.http.permissions import actor_of
from controlplane.core.page_responses import PersonRequest, is_in_dialog, show, signed_in
from controlplane.core.problem import problem_headers
from controlplane.core.roles import Power

from . import letter, links, payload
from .forms import LetterReasonForm
from .stream import find_stream_or_404

MANY_RETRIES = 3
"""Retries after which another one is unlikely to help."""

CarryOut = Callable[[str, Actor, datetime], tuple[str, str]]
"""Carries out the action for a reason; returns the message and the next URL."""


@signed_in
@require_http_methods(["GET", "POST"])
def retry(request: PersonRequest, server: str, entry_id: str, name: str) -> HttpResponse:
    now = db_now()
    stream = find_stream_or_404(server, name, now)

    def carry_out(reason: str, actor: Actor, now: datetime) -> tuple[str, str]:
        done = actions.retry(stream=stream, entry_id=entry_id, reason=reason, actor=actor, now=now)
        return f"Back in {stream.origin} as {done['new_id']}.", letter_page_url(stream, entry_id)

    about = {
        "troubled": find_unhealthy_consumers(stream, now),
        "delivery": settlement.delivery_guarantee(stream),
    }
    return _change(request, stream, entry_id, "retry", carry_out, about, now)


@signed_in
@require_http_methods(["GET", "POST"])
def discard(request: PersonRequest, server: str, entry_id: str, name: str) -> HttpResponse:
    now = db_now()
    stream = find_stream_or_404(server, name, now)

    def carry_out(reason: str, actor: Actor, now: datetime) -> tuple[str, str]:
        actions.discard(stream=stream, entry_id=entry_id, reason=reason, actor=actor, now=now)
        return f"Discarded {entry_id}; it can be put back.", letter_page_url(stream, entry_id)

    return _change(request, stream, entry_id, "discard", carry_out, {}, now)


@signed_in
@require_http_methods(["GET", "POST"])
def restore(request: PersonRequest, departure_id: int) -> HttpResponse:
    now = db_now()
    rows = Departure.objects.without_payload().select_related("stream")
    departure = rows.filter(pk=departure_id).first()
    if departure is None:
        raise Http404
    stream = departure.stream

    def carry_out(reason: str, actor: Actor, now: datetime) -> tuple[str, str]:
        restoration.restore(departure_id=departure_id, reason=reason, actor=actor, now=now)
        back = Departure.objects.without_payload().get(pk=departure_id)
        return f"It lies in {stream.name} again, as {back.new_id}.", _page_after(stream, back)

    entry_id = ids.to_entry_id(departure.position)
    about = {"left": departure, "back": reverse("archived_letter_page", args=[departure_id])}
    return _change(request, stream, entry_id, "restore", carry_out, about, now)


@signed_in
@require_http_methods(["GET", "POST"])
def reveal(request: PersonRequest, server: str, entry_id: str, name: str) -> HttpResponse:
    """Show the letter's page unredacted, once.

    It has no URL, so that every visit needs a reason.
    """
    now = db_now()
    stream, actor = find_stream_or_404(server, name, now), actor_of(request)
    actor.require_power(Power.ADMINISTER)
    form = LetterReasonForm(submitted_data(request))

    def act() -> HttpResponse:
        reason = form.given("reason")
        entry = revealing.reveal(
            stream=stream, entry_id=entry_id, actor=actor, now=now, reason=reason
        )
        context = letter.letter_context(
            request, stream, letter.truncate_for_page(entry), now, revealed=True
        )
        context["reveal_reason"] = reason
        return render(request, "breakers/dead_letters/letter.html", context)

    return _attempt(request, form, act, stream, _base_context(stream, entry_id, "reveal"))


@signed_in
@require_http_methods(["GET", "POST"])
def reveal_archived(request: PersonRequest, departure_id: int) -> HttpResponse:
    """Show the page of an archived letter unredacted, once."""
    now, actor = db_now(), actor_of(request)
    actor.require_power(Power.ADMINISTER)
    departure = letter.find_departure(departure_id)
    stream, entry_id = departure.stream, ids.to_entry_id(departure.position)
    form = LetterReasonForm(submitted_data(request))

    def act() -> HttpResponse:
        reason = form.given("reason")
        revealing.reveal_archived(departure_id=departure_id, actor=actor, now=now, reason=reason)
        context = letter.archived_context(request, departure, now, revealed=True)
        return render(request, "breakers/dead_letters/archived.html", context)

    back = reverse("archived_letter_page", args=[departure_id])
    return _attempt(
        request, form, act, stream, {**_base_context(stream, entry_id, "reveal"), "back": back}
    )


def _change(
    request: PersonRequest,
    stream: LetterStream,
    entry_id: str,
    verb: str,
    carry_out: CarryOut,
    about: dict[str, Any],
    now: datetime,
) -> HttpResponse:
    actor = actor_of(request)
    actor.require(settlement.SCOPE)
    form = LetterReasonForm(submitted_data(request))

    def act() -> HttpResponse:
        return redirect_with_message(request, *carry_out(form.given("reason"), actor, now))

    about = {**_base_context(stream, entry_id, verb), **about}
    if not form.is_bound and verb == "retry":
        about.update(_retry_warning(stream, entry_id))
    return _attempt(request, form, act, stream, about)


def _attempt(
    request: PersonRequest,
    form: LetterReasonForm,
    act: Callable[[], HttpResponse],
    stream: LetterStream,
    about: dict[str, Any],
) -> HttpResponse:
    """Show the form, or carry it out; on an error everything typed is kept."""
    answer = attempt_change(
        form, act, lambda error: render_refusal(request, stream, about["entry_id"], error)
    )
    if answer is not None:
        return answer
    status = 422 if form.is_bound else 200
    context = {**about, "form": form}
    return show(request, "breakers/dead_letters/letter_do.html", context, status=status)


def redirect_with_message(request: PersonRequest, message: str, url: str) -> HttpResponse:
    """Show a message on the next page, and redirect there, from the dialog too."""
    messages.success(request, message)
    return HttpResponseClientRedirect(url) if request.htmx else redirect(url)


def render_refusal(
    request: PersonRequest, stream: LetterStream, entry_id: str, error: DomainError
) -> HttpResponse:
    """Render the page that says why nothing was done."""
    context = {
        "heading": "Not done" if isinstance(error, Unavailable) else "Nothing was changed",
        "detail": error.detail,
        "url": letter_page_url(stream, entry_id) if entry_id else links.stream_url(stream),
    }
    # A dialog takes in what conflicts; anything worse would be a toast that doesn't say why.
    status = 409 if is_in_dialog(request) else error.status
    response = show(request, "breakers/dead_letters/notice.html", context, status=status)
    for name, said in problem_headers(error).items():
        response[name] = said
    return response


def letter_page_url(stream: LetterStream, entry_id: str) -> str:
    return links.letter_url(stream, entry_id)


def find_unhealthy_consumers(stream: LetterStream, now: datetime) -> list[DependencyStatus]:
    """Return the dependencies that would receive the letters and whose breakers are not closed."""
    pairs = [one.split("->", 1) for one in breaker_gates.find_consumer_dependencies(stream)]
    known = [Dependency.objects.named(caller, callee).first() for caller, callee in pairs]
    found = dependency_status.load_statuses([one for one in known if one is not None], now)
    return [
        one for one in found if one.state in (dependency_status.OPEN, dependency_status.HALF_OPEN)
    ]


def _retry_warning(stream: LetterStream, entry_id: str) -> dict[str, Any]:
    """Return the number of earlier retries, if the letter can be read."""
    try:
        entry = letter.read_letter(stream, entry_id, payload.PAGE_LIMITS)
    except DomainError:
        return {}
    return {"retries": entry.retries if entry else 0, "often": MANY_RETRIES}


def _base_context(stream: LetterStream, entry_id: str, verb: str) -> dict[str, Any]:
    return {
        "stream": stream,
        "entry_id": entry_id,
        "verb": verb,
        "back": letter_page_url(stream, entry_id),
    }


def _page_after(stream: LetterStream, departure: Departure) -> str:
    if departure.state == Departure.State.RESTORED and departure.new_id:
        return letter_page_url(stream, departure.new_id)
    return reverse("archived_letter_page", args=[departure.pk])
