"""Preview of a bulk edit: the first letters that it changes, before and after."""

import time
from dataclasses import dataclass
from typing import Any

from breakers.dead_letters.letters import differences, ids
from breakers.dead_letters.letters.differences import FieldChange
from breakers.dead_letters.letters.entries import RESERVED_NAMES
from breakers.dead_letters.letters.field_edits import FieldEdit
from breakers.dead_letters.letters.filters import LetterFilter
from breakers.dead_letters.letters.redaction import configured_redaction
from breakers.dead_letters.models import LetterStream

from . import selection

SHOWN = 3
SECONDS = 1.5


@dataclass(frozen=True)
class EditedLetter:
    """A letter that a bulk edit would change; hidden values in `changes` are redacted."""

    id: str
    changes: list[FieldChange]


def preview_edit(
    stream: LetterStream, chosen: LetterFilter, edit: FieldEdit, *, seconds: float = SECONDS
) -> list[EditedLetter]:
    """Return the first three letters that match and that the edit changes, oldest first.

    Raises :class:`ServerUnavailable` and :class:`ServerRefused`.
    """
    deadline = time.monotonic() + seconds
    redaction, found = configured_redaction(), []
    after, more = "", True
    while more and time.monotonic() < deadline:
        batch = selection.read_batch(stream, chosen, after=after, until=ids.MAX_POSITION)
        for entry in batch.entries:
            edited = edit.apply(entry, redaction) if chosen.matches(entry) else None
            if edited is None:
                continue
            before = [pair for pair in entry.original if pair[0] not in RESERVED_NAMES]
            after_edit = [pair for pair in edited if pair[0] not in RESERVED_NAMES]
            changes = differences.compare_messages(before, after_edit, redaction)
            found.append(EditedLetter(entry.id, changes))
            if len(found) == SHOWN:
                return found
        after, more = batch.position, batch.more
    return found


def list_resources(
    stream: LetterStream, chosen: LetterFilter, edit: FieldEdit
) -> list[dict[str, Any]]:
    """Return the preview as JSON."""
    return [
        {"id": one.id, "changes": [vars(change) for change in one.changes]}
        for one in preview_edit(stream, chosen, edit)
    ]
