"""Form pages that retry, discard, reveal or restore a letter, also shown in a dialog."""

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
from breakers.dead_letters.models import Departure, LetterStream
from breakers.dead_letters.removals import actions, execution, restoration, reveal, settlement
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
"""Number of retries after which another retry is unlikely to help."""

CarryOut = Callable[[str, Actor, datetime], tuple[str, str]]
"""A function that performs the action with a reason; returns the message and the next URL."""


@signed_in
@require_http_methods(["GET", "POST"])
def retry_letter(request: PersonRequest, server: str, entry_id: str, name: str) -> HttpResponse:
    now = db_now()
    stream = find_stream_or_404(server, name, now)

    def carry_out(reason: str, actor: Actor, now: datetime) -> tuple[str, str]:
        done = actions.retry(stream=stream, entry_id=entry_id, reason=reason, actor=actor, now=now)
        return f"Back in {stream.origin} as {done['new_id']}.", links.letter_url(stream, entry_id)

    about = {
        "troubled": find_unhealthy_consumers(stream, now),
        "delivery": execution.delivery_guarantee(stream),
    }
    return _change_letter(request, stream, entry_id, "retry", carry_out, about, now)


@signed_in
@require_http_methods(["GET", "POST"])
def discard_letter(request: PersonRequest, server: str, entry_id: str, name: str) -> HttpResponse:
    now = db_now()
    stream = find_stream_or_404(server, name, now)

    def carry_out(reason: str, actor: Actor, now: datetime) -> tuple[str, str]:
        actions.discard(stream=stream, entry_id=entry_id, reason=reason, actor=actor, now=now)
        return f"Discarded {entry_id}; it can be put back.", links.letter_url(stream, entry_id)

    return _change_letter(request, stream, entry_id, "discard", carry_out, {}, now)


@signed_in
@require_http_methods(["GET", "POST"])
def restore_letter(request: PersonRequest, departure_id: int) -> HttpResponse:
    now = db_now()
    rows = Departure.objects.without_payload().select_related("stream")
    departure = rows.filter(pk=departure_id).first()
    if departure is None:
        raise Http404
    stream = departure.stream

    def carry_out(reason: str, actor: Actor, now: datetime) -> tuple[str, str]:
        restoration.restore_letter(departure_id=departure_id, reason=reason, actor=actor, now=now)
        back = Departure.objects.without_payload().get(pk=departure_id)
        is_back = back.state == Departure.State.RESTORED and back.new_id
        url = links.letter_url(stream, back.new_id) if is_back else archive_url
        return f"It lies in {stream.name} again, as {back.new_id}.", url

    archive_url = reverse("archived_letter_page", args=[departure_id])
    about = {"left": departure, "back": archive_url}
    return _change_letter(request, stream, departure.entry_id, "restore", carry_out, about, now)


@signed_in
@require_http_methods(["GET", "POST"])
def reveal_letter(request: PersonRequest, server: str, entry_id: str, name: str) -> HttpResponse:
    """Show the letter's page without redaction.

    The page has no URL of its own, so a person has to give a reason each time.
    """
    now = db_now()
    stream, actor = find_stream_or_404(server, name, now), actor_of(request)
    actor.require_power(Power.ADMINISTER)
    form = LetterReasonForm(submitted_data(request))

    def act() -> HttpResponse:
        reason = form.get_text("reason")
        entry = reveal.reveal_letter(
            stream=stream, entry_id=entry_id, actor=actor, now=now, reason=reason
        )
        context = letter.letter_context(
            request, stream, letter.truncate_for_page(entry), now, revealed=True
        )
        context["reveal_reason"] = reason
        return render(request, "breakers/dead_letters/letter.html", context)

    return _show_or_act(request, form, act, stream, _base_context(stream, entry_id, "reveal"))


@signed_in
@require_http_methods(["GET", "POST"])
def reveal_archived(request: PersonRequest, departure_id: int) -> HttpResponse:
    """Show the page of an archived letter without redaction."""
    now, actor = db_now(), actor_of(request)
    actor.require_power(Power.ADMINISTER)
    departure = letter.find_departure(departure_id)
    form = LetterReasonForm(submitted_data(request))

    def act() -> HttpResponse:
        reason = form.get_text("reason")
        reveal.reveal_archived(departure_id=departure_id, actor=actor, now=now, reason=reason)
        context = letter.archived_context(request, departure, now, revealed=True)
        return render(request, "breakers/dead_letters/archived.html", context)

    context = _base_context(departure.stream, departure.entry_id, "reveal")
    context["back"] = reverse("archived_letter_page", args=[departure_id])
    return _show_or_act(request, form, act, departure.stream, context)


def _change_letter(
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
        return redirect_with_message(request, *carry_out(form.get_text("reason"), actor, now))

    about = {**_base_context(stream, entry_id, verb), **about}
    if not form.is_bound and verb == "retry":
        about.update(_retry_warning(stream, entry_id))
    return _show_or_act(request, form, act, stream, about)


def _show_or_act(
    request: PersonRequest,
    form: LetterReasonForm,
    act: Callable[[], HttpResponse],
    stream: LetterStream,
    about: dict[str, Any],
) -> HttpResponse:
    """Show the form, or perform the action; after an error the form keeps its input."""
    answer = attempt_change(
        form, act, lambda error: render_refusal(request, stream, about["entry_id"], error)
    )
    if answer is not None:
        return answer
    status = 422 if form.is_bound else 200
    template = "breakers/dead_letters/letter_do.html"
    return show(request, template, {**about, "form": form}, status=status)


def redirect_with_message(request: PersonRequest, message: str, url: str) -> HttpResponse:
    """Redirect to `url`, also from a dialog, and show the message there."""
    messages.success(request, message)
    return HttpResponseClientRedirect(url) if request.htmx else redirect(url)


def render_refusal(
    request: PersonRequest, stream: LetterStream, entry_id: str, error: DomainError
) -> HttpResponse:
    """Render the page with the reason why the action failed."""
    context = {
        "heading": "Not done" if isinstance(error, Unavailable) else "Nothing was changed",
        "detail": error.detail,
        "url": links.letter_url(stream, entry_id) if entry_id else links.stream_url(stream),
    }
    # A dialog shows the page only for a 409; for other errors it shows a toast without the reason.
    status = 409 if is_in_dialog(request) else error.status
    response = show(request, "breakers/dead_letters/notice.html", context, status=status)
    for name, value in problem_headers(error).items():
        response[name] = value
    return response


def find_unhealthy_consumers(stream: LetterStream, now: datetime) -> list[DependencyStatus]:
    """Return the consumers of the stream's origin whose breakers are not closed."""
    pairs = [one.split("->", 1) for one in breaker_gates.find_consumer_dependencies(stream)]
    rows = [Dependency.objects.for_pair(caller, callee).first() for caller, callee in pairs]
    statuses = dependency_status.load_statuses([one for one in rows if one is not None], now)
    unhealthy = (dependency_status.OPEN, dependency_status.HALF_OPEN)
    return [one for one in statuses if one.state in unhealthy]


def _retry_warning(stream: LetterStream, entry_id: str) -> dict[str, Any]:
    """Return the number of earlier retries for the form; empty if the letter can't be read."""
    try:
        entry = letter.read_letter(stream, entry_id, payload.PAGE_LIMITS)
    except DomainError:
        return {}
    return {"retries": entry.retries if entry else 0, "often": MANY_RETRIES}


def _base_context(stream: LetterStream, entry_id: str, verb: str) -> dict[str, Any]:
    back = links.letter_url(stream, entry_id)
    return {"stream": stream, "entry_id": entry_id, "verb": verb, "back": back}
