"""A bulk job as it is asked for: what it would take and what not is counted first, then confirmed
with a reason and a rate."""

from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from breakers.dead_letters.bulk import holding, planning, replays
from breakers.dead_letters.departures import leaving
from breakers.dead_letters.letters import fingerprints
from breakers.dead_letters.letters.filters import Chosen
from breakers.dead_letters.places.servers import ServerAway, ServerRefused
from breakers.models.dead_letters import LetterGroup, LetterStream
from breakers.views.dead_letters import addresses, messages
from breakers.views.dead_letters.changes import moved_on, refused, troubled
from breakers.views.dead_letters.forms import BulkForm
from breakers.views.dead_letters.stream import find
from controlplane.core.approvals.models import Approval
from controlplane.core.browser import PersonRequest, show, signed_in
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict, InvalidInput, NotFound, Unavailable
from controlplane.core.http.authentication import actor_of

COUNTING_SECONDS = 3.0
WORDS = {
    "fingerprint": "group",
    "error_type": "error type",
    "error": "error has",
    "q": "any value has",
    "field": "field",
    "value": "is",
    "after": "failed from",
    "before": "until",
}


@signed_in
@require_http_methods(["GET", "POST"])
def bulk(request: PersonRequest, server: str, name: str) -> HttpResponse:
    now = db_now()
    stream, actor = find(server, name, now), actor_of(request)
    actor.require(leaving.SCOPE)
    asked = request.POST if request.method == "POST" else request.GET
    action = asked.get("action", "")
    action = action if action in replays.ACTIONS else replays.RETRY
    try:
        chosen = messages.chosen_of(messages.typed(asked))
    except InvalidInput as error:
        return refused(request, stream, "", Conflict(error.detail))
    form = BulkForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        try:
            begun = replays.ask(
                stream=stream, action=action, chosen=chosen, actor=actor, now=now, **form.asked()
            )
        except InvalidInput as error:
            form.take(error.errors)
        except (Conflict, NotFound, Unavailable) as error:
            return refused(request, stream, "", error)
        else:
            return _begun(request, begun)
    context = {**_context(stream, action, chosen, now), "form": form}
    status = 422 if form.is_bound else 200
    return show(request, "breakers/dead_letters/bulk.html", context, status=status)


def _begun(request: PersonRequest, begun: Any) -> HttpResponse:
    if isinstance(begun, Approval):
        said = "Somebody else has to approve it; nothing leaves before."
        return moved_on(request, said, reverse("approvals_page"))
    return moved_on(request, f"Job {begun.pk} begins.", reverse("replay_page", args=[begun.pk]))


def _context(stream: LetterStream, action: str, chosen: Chosen, now: datetime) -> dict[str, Any]:
    counts, trouble = None, ""
    try:
        counts = planning.count(
            stream, chosen, action, replays.MOST_RETRIES, now, seconds=COUNTING_SECONDS
        )
    except (ServerAway, ServerRefused) as error:
        trouble = error.detail
    query = {"action": action, **chosen.as_dict()}
    return {
        "stream": stream,
        "action": action,
        "chosen": chosen,
        "narrowed_by": [(WORDS.get(name, name), said) for name, said in chosen.as_dict().items()],
        "hidden": query.items(),
        "group": _group(stream, chosen),
        "counts": counts,
        "lasts_seconds": counts.eligible / replays.RATE_PER_SECOND if counts else None,
        "trouble": trouble,
        "waits_for": holding.by_registry(stream) if action == replays.RETRY else [],
        "troubled": troubled(stream, now) if action == replays.RETRY else [],
        "delivery": leaving.delivery_of(stream),
        "rate": replays.RATE_PER_SECOND,
        "most_retries": replays.MOST_RETRIES,
        "url": reverse("letters_bulk", args=[stream.server, stream.name]),
        "again": f"?{urlencode(query)}",
        "back": addresses.of_stream(stream),
    }


def _group(stream: LetterStream, chosen: Chosen) -> LetterGroup | fingerprints.Fingerprint | None:
    if not chosen.fingerprint:
        return None
    return LetterGroup.objects.filter(stream=stream, fingerprint=chosen.fingerprint).first()
