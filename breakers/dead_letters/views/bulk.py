"""Form page of a bulk job, which counts the matching letters and starts the job."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django import forms
from django.http import HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from breakers.dead_letters.bulk import (
    breaker_gates,
    edit_preview,
    eligibility,
    replays,
    results,
)
from breakers.dead_letters.letters import field_edits, filters
from breakers.dead_letters.letters.field_edits import MAX_VALUE_LENGTH, FieldEdit, parse_value
from breakers.dead_letters.letters.filters import IDS, MAX_FILTER_LENGTH, LetterFilter
from breakers.dead_letters.models import LetterStream, Replay
from breakers.dead_letters.redis_servers.servers import ServerRefused, ServerUnavailable
from breakers.dead_letters.removals import execution, settlement
from controlplane.core import canonical
from controlplane.core.approvals.models import Approval
from controlplane.core.change_views import attempt_change, submitted_data
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict, InvalidInput
from controlplane.core.http.permissions import actor_of
from controlplane.core.page_responses import PersonRequest, redirect_done, show, signed_in

from . import letter, messages
from .changes import LetterReasonForm, find_unhealthy_consumers, render_refusal
from .stream import find_stream_or_404

COUNTING_SECONDS = 3.0
COUNT = "count"
"""Value of the button that counts again without starting the job."""
EDIT = "edit"
"""Value of `action` that opens the form of a retry with an edit."""
RETRY_REASON = {
    "placeholder": "oracle is back since 03:10, INC-4411",
    "hint": "What has changed since they failed. Stored with each letter.",
}
REMOVAL_REASON = {
    "placeholder": "Test orders of the load test, INC-4411",
    "hint": "Why they are no longer needed. Stored with each letter.",
}
OPERATION_WORDS = {"set": "Set", "replace": "Replace", "remove": "Remove"}


class BulkForm(LetterReasonForm):
    """Form of a bulk job: rate, retry limit and reason."""

    renamed = {"rate_per_second": "rate", **{name: f"edit_{name}" for name in field_edits.NAMES}}

    rate = forms.FloatField(
        required=False,
        min_value=replays.MIN_RATE_PER_SECOND,
        max_value=replays.MAX_RATE_PER_SECOND,
        error_messages={
            "invalid": "Enter a number of letters per second.",
            "min_value": f"At least {replays.MIN_RATE_PER_SECOND:g} a second.",
            "max_value": f"At most {replays.MAX_RATE_PER_SECOND:g} a second.",
        },
    )
    most_retries = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=replays.MAX_RETRIES_LIMIT,
        error_messages={"invalid": "Enter a whole number."},
    )
    does_wait = forms.BooleanField(required=False)
    edit_op = forms.ChoiceField(required=False, choices=list(OPERATION_WORDS.items()))
    edit_path = forms.CharField(required=False, strip=False, max_length=MAX_FILTER_LENGTH)
    edit_value = forms.CharField(required=False, strip=False, max_length=MAX_VALUE_LENGTH)
    edit_find = forms.CharField(required=False, strip=False, max_length=MAX_VALUE_LENGTH)

    def read_edit(self) -> FieldEdit | None:
        """Return the submitted edit; None, with errors in the form, if it is incomplete."""
        if not self.is_bound or not self.is_valid():
            return None
        typed = self.cleaned_data
        given = {"op": typed["edit_op"], "path": typed["edit_path"].strip()}
        for name in {"set": ["value"], "replace": ["find", "value"]}.get(given["op"], ()):
            given[name] = parse_value(typed[f"edit_{name}"])
        try:
            return FieldEdit.from_mapping(given)
        except InvalidInput as error:
            self.add_service_errors(error.errors)
            return None

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
        is_edit, action = action == EDIT, replays.RETRY if action == EDIT else action
    except InvalidInput as error:
        return render_refusal(request, stream, "", Conflict(error.detail))
    settlement.require_authority(actor, action, stream)
    form = BulkForm(submitted_data(request))
    edit = form.read_edit() if is_edit else None

    def build_context(**more: Any) -> dict[str, Any]:
        context = _form_context(stream, action, chosen, form, edit, now, is_edit=is_edit)
        return {**context, **more}

    if request.POST.get("do") == COUNT and request.htmx:
        form.is_valid()
        return render(request, "breakers/dead_letters/_bulk_preview.html", build_context(oob=True))
    if request.method == "POST" and is_edit and not _is_previewed(request.POST, edit):
        status = 200 if request.POST.get("do") == COUNT else 422
        return show(request, "breakers/dead_letters/bulk.html", build_context(), status=status)

    def act() -> HttpResponse:
        arguments = {**form.service_arguments(), "edit": edit}
        result = replays.request_replay(
            stream=stream, action=action, chosen=chosen, actor=actor, now=now, **arguments
        )
        if isinstance(result, Approval):
            text = "Purge requested. A second person must approve it."
            return redirect_done(request, text, reverse("approvals_page"))
        url = reverse("replay_page", args=[result.pk])
        return redirect_done(request, f"Job {result.pk} started.", url)

    answer = attempt_change(form, act, lambda error: render_refusal(request, stream, "", error))
    if answer is not None:
        return answer
    status = 422 if form.is_bound else 200
    return show(request, "breakers/dead_letters/bulk.html", build_context(), status=status)


def _is_previewed(posted: Mapping[str, str], edit: FieldEdit | None) -> bool:
    """Return True if the form was submitted to start the job, with the edit of its preview."""
    if edit is None or posted.get("do") == COUNT:
        return False
    return posted.get("previewed") == canonical.dumps(edit.as_dict())


def _parse_request(given: QueryDict) -> tuple[str, LetterFilter]:
    """Return the action and the letter filter of a form or URL. Raises :class:`InvalidInput`.

    Empty values are errors: an empty error group must not select all letters. The form of the list
    sends `select` with the selected `ids`, or `all` for every letter that matches its filter.
    """
    action = given.get("action", replays.RETRY)
    if action not in (*replays.ACTIONS, EDIT):
        raise InvalidInput({"action": [f"Must be one of {', '.join(replays.ACTIONS)}."]})
    if not given.get("all") and (selected := ",".join(given.getlist(IDS))):
        return action, LetterFilter.from_mapping({IDS: selected})
    if given.get("select") and not given.get("all"):
        raise InvalidInput({IDS: ["Select at least one letter."]})
    criteria = {name: given[name] for name in messages.NAMES if name in given}
    empty = [name for name, value in criteria.items() if not value and name != "value"]
    if empty or ("value" in criteria and "field" not in criteria):
        raise InvalidInput({name: ["Enter a value."] for name in empty or ["field"]})
    return action, LetterFilter.from_mapping(criteria)


def _form_context(
    stream: LetterStream,
    action: str,
    chosen: LetterFilter,
    form: BulkForm,
    edit: FieldEdit | None,
    now: datetime,
    *,
    is_edit: bool,
) -> dict[str, Any]:
    counts, trouble = None, ""
    preview: list[dict[str, Any]] = []
    limits = form.limits()
    rate, most_retries = limits["rate_per_second"], limits["most_retries"]
    try:
        counts = eligibility.count_eligible(
            stream, chosen, action, most_retries, now, seconds=COUNTING_SECONDS, edit=edit
        )
        if edit is not None:
            preview = [
                {"id": one.id, "changes": letter.list_changes(one.changes)}
                for one in edit_preview.preview_edit(stream, chosen, edit)
            ]
    except (ServerUnavailable, ServerRefused) as error:
        trouble = error.detail
    criteria = chosen.as_dict()
    is_retry = action == replays.RETRY
    last = _find_last_retry(stream) if is_retry else None
    return {
        **(RETRY_REASON if is_retry else REMOVAL_REASON),
        "form": form,
        "stream": stream,
        "action": action,
        "is_edit": is_edit,
        "edit": edit,
        "preview": preview,
        "previewed": canonical.dumps(edit.as_dict()) if edit else "",
        "operations": OPERATION_WORDS.items(),
        "chosen": chosen,
        "narrowed_by": filters.describe_criteria(criteria),
        "hidden": {"action": EDIT if is_edit else action, **criteria}.items(),
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
