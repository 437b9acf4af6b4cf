"""Form page that edits a letter's message before a retry.

Binary values, repeated names and hidden values are read-only, as a form could change them.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_http_methods

from breakers.dead_letters.letters import lossless_json, presentation, redaction
from breakers.dead_letters.letters.entries import RESERVED_NAMES, LetterEntry, ReadLimits, to_text
from breakers.dead_letters.models import LetterStream
from breakers.dead_letters.removals import actions, reveal, settlement
from controlplane.core.actors import Actor
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict, InvalidInput, NotFound, Unavailable
from controlplane.core.http.permissions import actor_of
from controlplane.core.page_responses import PersonRequest, redirect_done, signed_in
from controlplane.core.roles import Power

from . import letter, payload
from .changes import find_unhealthy_consumers, render_refusal
from .redacted_edits import restore_hidden
from .stream import find_stream_or_404

MAX_BYTES = 40 * 1024
"""Maximum size of a message that a form request can carry."""
MAX_FIELDS = 200
EDIT_LIMITS = ReadLimits(value_bytes=MAX_BYTES + 1, fields=MAX_FIELDS + 20)


@dataclass(frozen=True)
class EditField:
    """A field in the edit form.

    `why_not` is the reason why a field is read-only, empty if it can be edited. `typed` is the
    posted or displayed value. If `is_written_out`, invisible characters in `typed` are escaped.
    """

    index: int
    name: str
    typed: str
    is_json: bool
    why_not: str
    is_hidden: bool = False
    is_written_out: bool = False
    original: bytes = b""
    removed: bool = False
    errors: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        return payload.escape_unseen(self.name)

    @property
    def rows(self) -> int:
        return min(18, max(1, self.typed.count("\n") + 1, len(self.typed) // 90 + 1))


@signed_in
@require_http_methods(["GET", "POST"])
def edit_letter(request: PersonRequest, server: str, entry_id: str, name: str) -> HttpResponse:
    now = db_now()
    stream, actor = find_stream_or_404(server, name, now), actor_of(request)
    settlement.require_authority(actor, actions.RETRY, stream)
    try:
        entry = letter.read_letter(stream, entry_id, EDIT_LIMITS)
        if entry is None:
            raise Conflict(f"The letter {entry_id} is no longer in the stream.")
        if not entry.is_whole or entry.size_bytes > MAX_BYTES:
            raise Conflict(
                "This message is too large to edit in a form. Use the API: POST …/retry with"
                " edited_fields."
            )
        sees_all = _sees_all(request, stream, entry_id, actor, now)
        fields = _build_fields(entry, sees_all=sees_all)
        if request.method == "POST" and request.POST.get("do") != "open":
            return _save(request, stream, entry, fields, actor, now)
    except InvalidInput as error:
        return render_refusal(request, stream, entry_id, Conflict(error.detail))
    except (Conflict, NotFound, Unavailable) as error:
        return render_refusal(request, stream, entry_id, error)
    return _render_form(request, stream, entry, fields, {}, now)


def _sees_all(
    request: PersonRequest, stream: LetterStream, entry_id: str, actor: Actor, now: datetime
) -> bool:
    """Return True if the form shows hidden values, which only an admin can request.

    Opening the form with hidden values needs a reason and is recorded in the audit trail.
    """
    if not actor.has(Power.ADMINISTER) or request.method != "POST":
        return False
    if request.POST.get("do") == "open":
        reason = request.POST.get("reveal_reason", "")
        reveal.reveal_letter(stream=stream, entry_id=entry_id, actor=actor, now=now, reason=reason)
        return True
    return request.POST.get("sees_all") == "1"


def _save(
    request: PersonRequest,
    stream: LetterStream,
    entry: LetterEntry,
    fields: list[EditField],
    actor: Actor,
    now: datetime,
) -> HttpResponse:
    typed, edited = _read_posted(fields, request.POST)
    errors: dict[str, Any] = {}
    if any(one.errors for one in typed):
        errors["form"] = ["Some fields are invalid."]
    elif not edited:
        errors["form"] = ["Nothing was edited. To retry the letter unchanged, go back."]
    else:
        try:
            done = actions.retry(
                stream=stream,
                entry_id=entry.id,
                reason=request.POST.get("reason", "").replace("\r\n", "\n"),
                edited_fields=edited,
                actor=actor,
                now=now,
            )
        except InvalidInput as error:
            errors = dict(error.errors)
            errors["form"] = [
                payload.escape_unseen(f"{name}: {' '.join(texts)}")
                for name, texts in error.errors.items()
                if name != "reason"
            ]
        else:
            message = f"Edited and sent to {stream.origin} as {done['new_id']}."
            return redirect_done(request, message, stream.letter_url(entry.id))
    return _render_form(request, stream, entry, typed, errors, now)


def _render_form(
    request: PersonRequest,
    stream: LetterStream,
    entry: LetterEntry,
    fields: list[EditField],
    errors: Mapping[str, Any],
    now: datetime,
) -> HttpResponse:
    posted = request.POST if request.POST.get("do") != "open" else {}
    is_open = request.POST.get("do") == "open" or request.POST.get("sees_all") == "1"
    context = {
        "now": now,
        "stream": stream,
        "entry": entry,
        "fields": fields,
        "errors": errors,
        "sees_all": is_open,
        "troubled": find_unhealthy_consumers(stream, now),
        "new_name": posted.get("new-name", ""),
        "new_value": posted.get("new-value", ""),
        "placeholder": "The amount was sent as text; corrected by hand, INC-4411",
        "hint": "Stored with the letter.",
        "reason": {"value": posted.get("reason", ""), "errors": errors.get("reason", [])},
    }
    status = 422 if errors else 200
    return render(request, "breakers/dead_letters/edit.html", context, status=status)


def _build_fields(entry: LetterEntry, *, sees_all: bool) -> list[EditField]:
    hiding = redaction.configured_redaction()
    names = [name for name, _ in entry.original]
    own = [pair for pair in entry.original if pair[0] not in RESERVED_NAMES]
    fields = []
    for index, (name, value) in enumerate(own):
        redacted = hiding.redact_value(name, value)
        shown = value if sees_all else redacted
        indented = lossless_json.format_json(shown)
        why_not = _uneditable_reason(name, value, names.count(name))
        if not why_not and shown != value and indented is None:
            why_not = "hidden"
        if why_not:
            text = to_text(redacted[:2000])
        else:
            text = indented or _normalize_newlines(to_text(shown))
        fields.append(
            EditField(
                index=index,
                name=to_text(name),
                typed=payload.escape_unseen(text),
                is_json=indented is not None,
                why_not=why_not,
                is_hidden=redacted != value,
                is_written_out=payload.has_unseen(text),
                original=value,
            )
        )
    return fields


def _uneditable_reason(name: bytes, value: bytes, times: int) -> str:
    if times > 1:
        return "several"
    if not presentation.is_text(value) or not presentation.is_text(name):
        return "bytes"
    text = _normalize_newlines(to_text(value))
    has_controls = any(ord(one) < 32 and one not in "\n\t" for one in text)
    # The original has to be recoverable from its escaped form.
    is_recoverable = (
        lossless_json.format_json(text) is not None
        or not payload.has_unseen(text)
        or payload.unescape_unseen(text) == text
    )
    return "" if is_recoverable and not has_controls else "bytes"


def _normalize_newlines(text: str) -> str:
    return text.replace("\r\n", "\n")  # Browsers send the former.


def _read_posted(
    fields: list[EditField], posted: Mapping[str, str]
) -> tuple[list[EditField], dict[str, Any]]:
    """Return the submitted fields with error messages, and a mapping of field name to new value."""
    edited: dict[str, Any] = {}
    typed = []
    for field in fields:
        one, is_changed, value = _read_field(field, posted)
        typed.append(one)
        if is_changed:
            edited[field.name] = value
    if name := posted.get("new-name", "").strip():
        edited[name] = _normalize_newlines(posted.get("new-value", ""))
    return typed, edited


def _read_field(field: EditField, posted: Mapping[str, str]) -> tuple[EditField, bool, str | None]:
    """Return the submitted field, True if it was changed, and its new value (None to remove it)."""
    if field.why_not:
        return field, False, None
    if f"field-{field.index}" not in posted:
        # A hidden field that was not in the form stays hidden.
        hidden = replace(field, typed=redaction.REDACTED, why_not="hidden")
        return hidden if field.is_hidden else field, False, None
    typed = _normalize_newlines(posted[f"field-{field.index}"]).replace("\x00", "")
    if posted.get(f"remove-{field.index}"):
        return replace(field, typed=typed, removed=True), True, None
    before = field.typed
    now = replace(field, typed=typed)
    if typed == before:
        return field, False, None
    if not field.is_json:
        only_crlf = b"\r\n" in field.original and b"\n" not in field.original.replace(b"\r\n", b"")
        text = payload.unescape_unseen(typed) if field.is_written_out else typed
        return now, True, text.replace("\n", "\r\n") if only_crlf else text
    try:
        value = lossless_json.compact_json(typed)
        if value == lossless_json.compact_json(before):
            return now, False, None
        if redaction.REDACTED in before and field.is_hidden:
            value = restore_hidden(typed, field.original, before.encode())
    except RecursionError:
        problem = "This is nested too deeply."
    except json.JSONDecodeError as error:
        problem = f"This is not valid JSON: {error}"
    except ValueError as error:
        problem = str(error)
    else:
        return now, True, value
    return replace(now, errors=(problem,)), False, None
