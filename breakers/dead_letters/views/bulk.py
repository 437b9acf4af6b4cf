"""Form page of a bulk job, which counts the matching letters and starts the job."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django import forms
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from breakers.dead_letters.bulk import breaker_gates, eligibility, replays, results
from breakers.dead_letters.letters.filters import LetterFilter
from breakers.dead_letters.models import LetterStream, Replay
from breakers.dead_letters.redis_servers.servers import ServerRefused, ServerUnavailable
from breakers.dead_letters.removals import execution, settlement
from controlplane.core.approvals.models import Approval
from controlplane.core.change_views import attempt_change, submitted_data
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict, InvalidInput
from controlplane.core.http.permissions import actor_of
from controlplane.core.page_responses import PersonRequest, redirect_done, show, signed_in

from . import messages
from .changes import LetterReasonForm, find_unhealthy_consumers, render_refusal
from .stream import find_stream_or_404

COUNTING_SECONDS = 3.0
COUNT = "count"
"""Value of the button that counts again without starting the job."""
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


class BulkForm(LetterReasonForm):
    """Form of a bulk job: rate, retry limit and reason."""

    renamed = {"rate_per_second": "rate", "waits_for": "waits_for"}

    rate = forms.FloatField(
        required=False,
        min_value=replays.MIN_RATE_PER_SECOND,
        max_value=replays.MAX_RATE_PER_SECOND,
        error_messages={
            "invalid": "Write a number of letters a second.",
            "min_value": f"At least {replays.MIN_RATE_PER_SECOND:g} a second.",
            "max_value": f"At most {replays.MAX_RATE_PER_SECOND:g} a second.",
        },
    )
    most_retries = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=replays.MAX_RETRIES_LIMIT,
        error_messages={"invalid": "Write a whole number."},
    )
    does_wait = forms.BooleanField(required=False)

    def limits(self) -> dict[str, Any]:
        """Return the job's rate and retry limit, with defaults for empty or invalid input."""
        given = self.cleaned_data if self.is_bound else {}
        return {
            "rate_per_second": given.get("rate") or replays.RATE_PER_SECOND,
            "most_retries": given.get("most_retries") or replays.MAX_RETRIES,
        }

    def service_arguments(self) -> dict[str, Any]:
        arguments = {**self.limits(), "reason": self.get_text("reason")}
        if not self.cleaned_data.get("does_wait"):
            arguments["waits_for"] = []
        return arguments


@signed_in
@require_http_methods(["GET", "POST"])
def bulk_job_page(request: PersonRequest, server: str, name: str) -> HttpResponse:
    now = db_now()
    stream, actor = find_stream_or_404(server, name, now), actor_of(request)
    actor.require(settlement.SCOPE)
    try:
        action, chosen = _parse_request(request.POST if request.method == "POST" else request.GET)
    except InvalidInput as error:
        return render_refusal(request, stream, "", Conflict(error.detail))
    form = BulkForm(submitted_data(request))
    if request.POST.get("do") == COUNT:
        form.is_valid()
        context = _form_context(stream, action, chosen, form, now)
        return render(request, "breakers/dead_letters/_bulk_preview.html", {**context, "oob": True})

    def act() -> HttpResponse:
        arguments = form.service_arguments()
        result = replays.request_replay(
            stream=stream, action=action, chosen=chosen, actor=actor, now=now, **arguments
        )
        if isinstance(result, Approval):
            text = "Somebody else has to approve it; nothing leaves before."
            return redirect_done(request, text, reverse("approvals_page"))
        url = reverse("replay_page", args=[result.pk])
        return redirect_done(request, f"Job {result.pk} begins.", url)

    answer = attempt_change(form, act, lambda error: render_refusal(request, stream, "", error))
    if answer is not None:
        return answer
    status = 422 if form.is_bound else 200
    context = _form_context(stream, action, chosen, form, now)
    return show(request, "breakers/dead_letters/bulk.html", context, status=status)


def _parse_request(given: Mapping[str, str]) -> tuple[str, LetterFilter]:
    """Return the action and the letter filter of a form or URL. Raises :class:`InvalidInput`.

    Empty values are errors: an empty error group must not select all letters.
    """
    action = given.get("action", replays.RETRY)
    if action not in replays.ACTIONS:
        raise InvalidInput({"action": [f"Must be one of {', '.join(replays.ACTIONS)}."]})
    criteria = {name: given[name] for name in messages.NAMES if name in given}
    empty = [name for name, value in criteria.items() if not value and name != "value"]
    if empty or ("value" in criteria and "field" not in criteria):
        raise InvalidInput({name: ["Nothing is said."] for name in empty or ["field"]})
    return action, LetterFilter.from_mapping(criteria)


def _form_context(
    stream: LetterStream, action: str, chosen: LetterFilter, form: BulkForm, now: datetime
) -> dict[str, Any]:
    counts, trouble = None, ""
    limits = form.limits()
    rate, most_retries = limits["rate_per_second"], limits["most_retries"]
    try:
        counts = eligibility.count_eligible(
            stream, chosen, action, most_retries, now, seconds=COUNTING_SECONDS
        )
    except (ServerUnavailable, ServerRefused) as error:
        trouble = error.detail
    criteria = chosen.as_dict()
    is_retry = action == replays.RETRY
    last = _find_last_retry(stream) if is_retry else None
    return {
        "form": form,
        "stream": stream,
        "action": action,
        "chosen": chosen,
        "narrowed_by": [(WORDS.get(name, name), value) for name, value in criteria.items()],
        "hidden": {"action": action, **criteria}.items(),
        "group": messages.find_group(stream, chosen.fingerprint),
        "counts": counts,
        "last_replay": last,
        "last_result": results.describe_result(last) if last else None,
        "lasts_seconds": counts.eligible / rate if counts else None,
        "trouble": trouble,
        "waits_for": breaker_gates.find_consumer_dependencies(stream) if is_retry else [],
        "troubled": find_unhealthy_consumers(stream, now) if is_retry else [],
        "delivery": execution.delivery_guarantee(stream),
        "rate": rate,
        "most_retries": most_retries,
        "usual": {"rate": replays.RATE_PER_SECOND, "most_retries": replays.MAX_RETRIES},
        "url": reverse("letters_bulk", args=[stream.server, stream.name]),
        "back": stream.page_url,
    }


def _find_last_retry(stream: LetterStream) -> Replay | None:
    """Return the last bulk job that retried letters of the stream."""
    rows = Replay.objects.filter(stream=stream, action=replays.RETRY).select_related("job")
    return rows.order_by("-pk").first()
