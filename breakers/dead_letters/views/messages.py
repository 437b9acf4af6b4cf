"""Tab of the stream page with the letters, optionally filtered."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.utils import timezone

from breakers.dead_letters import letter_list
from breakers.dead_letters.letters import redaction
from breakers.dead_letters.letters.entries import LetterEntry
from breakers.dead_letters.letters.filters import MOMENTS, TEXTS, LetterFilter
from breakers.dead_letters.models import LetterGroup, LetterStream
from breakers.dead_letters.monitoring import indexer
from breakers.dead_letters.redis_servers.servers import ServerRefused, ServerUnavailable
from controlplane.core.errors import InvalidInput
from controlplane.core.page_responses import PersonRequest

from . import payload

PAGE_SIZE = 50
SECONDS = 1.5
NAMES = (*TEXTS, *MOMENTS)
BEHIND_MORE = ("field", "value", "error_type", "error", "after", "before")


def messages_context(request: PersonRequest, stream: LetterStream, now: datetime) -> dict[str, Any]:
    typed = {name: request.GET.get(name, "").replace("\x00", "") for name in (*NAMES, "cursor")}
    errors: dict[str, list[str]] = {}
    chosen, page, trouble = LetterFilter(), letter_list.LetterPage(), ""
    try:
        chosen = parse_filter(typed)
        if chosen.uses_index:
            indexer.catch_up(stream, now, seconds=0.2)
        page = letter_list.read_page(
            stream, chosen, cursor=typed["cursor"], limit=PAGE_SIZE, seconds=SECONDS
        )
    except InvalidInput as error:
        errors = dict(error.errors)
    except (ServerUnavailable, ServerRefused) as error:
        trouble = error.detail
    return {
        "given": typed,
        "filter_errors": errors,
        "trouble": trouble or " ".join(errors.get("cursor", [])),
        "narrowed": not chosen.is_everything or bool(errors),
        "more_narrowed": any(typed[name] for name in BEHIND_MORE),
        "export_query": urlencode({"server": stream.server, **chosen.as_dict()}),
        "chosen_criteria": chosen.as_dict().items(),
        "letters": [_letter_line(stream, entry) for entry in page.entries],
        "next": page.next,
        "looked_at": page.looked_at if chosen.needs_payload else 0,
        "is_walked": chosen.needs_payload,
        "group": find_group(stream, chosen.fingerprint),
    }


def parse_filter(given: Mapping[str, str]) -> LetterFilter:
    """Return the letter filter of a form; times without a zone are in the user's time zone.

    Raises :class:`InvalidInput`.
    """
    criteria: dict[str, Any] = {name: given.get(name, "") for name in NAMES}
    for name in MOMENTS:
        try:
            moment = datetime.fromisoformat(criteria[name])
        except ValueError:
            continue
        criteria[name] = moment if moment.tzinfo else timezone.make_aware(moment)
    if not criteria["field"]:
        criteria["value"] = ""
    elif not criteria["value"]:
        del criteria["value"]
    return LetterFilter.from_mapping(criteria)


def _letter_line(stream: LetterStream, entry: LetterEntry) -> dict[str, Any]:
    """Return a letter as a table row; its texts are truncated, redacted and escaped."""
    redacted = redaction.configured_redaction().redact_entry(entry)
    return {
        "id": entry.id,
        "url": stream.letter_url(entry.id),
        "error": payload.escape_unseen(redacted.error[:300]),
        "error_type": payload.escape_unseen(redacted.error_type[:120]),
        "failed_at": entry.failed_at,
        "brief": payload.summarize_fields(redacted),
        "retries": entry.retries,
        "size_bytes": entry.size_bytes,
    }


def find_group(stream: LetterStream, fingerprint: str) -> LetterGroup | None:
    return stream.groups.filter(fingerprint=fingerprint).first() if fingerprint else None
