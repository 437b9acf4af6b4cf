"""The letters of a stream one by one: all of them, or those that a filter means."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.utils import timezone

from breakers.dead_letters import letter_list
from breakers.dead_letters.letters import redaction
from breakers.dead_letters.letters.entries import Entry
from breakers.dead_letters.letters.filters import MOMENTS, TEXTS, Chosen
from breakers.dead_letters.models import LetterGroup, LetterStream
from breakers.dead_letters.monitoring import indexer
from breakers.dead_letters.redis_servers.servers import ServerAway, ServerRefused
from controlplane.core.browser import PersonRequest
from controlplane.core.errors import InvalidInput

from . import links, payload

PAGE_SIZE = 50
SECONDS = 1.5
NAMES = (*TEXTS, *MOMENTS)
BEHIND_MORE = ("field", "value", "error_type", "error", "after", "before")


@dataclass(frozen=True)
class Line:
    """A letter as a row: nothing in it is long, hidden, or can't be seen."""

    id: str
    url: str
    error: str
    error_type: str
    failed_at: datetime | None
    brief: list[tuple[str, str]]
    retries: int
    size_bytes: int


def context(request: PersonRequest, stream: LetterStream, now: datetime) -> dict[str, Any]:
    given = typed(request.GET)
    errors: dict[str, list[str]] = {}
    chosen, found, trouble = Chosen(), letter_list.Page(), ""
    try:
        chosen = chosen_of(given)
        if chosen.uses_index:
            indexer.catch_up(stream, now, seconds=0.2)
        cursor = given["cursor"]
        found = letter_list.page(stream, chosen, cursor=cursor, limit=PAGE_SIZE, seconds=SECONDS)
    except InvalidInput as error:
        errors = dict(error.errors)
    except (ServerAway, ServerRefused) as error:
        trouble = error.detail
    return {
        "given": given,
        "filter_errors": errors,
        "trouble": trouble or " ".join(errors.get("cursor", [])),
        "narrowed": not chosen.is_everything or bool(errors),
        "more_narrowed": any(given[name] for name in BEHIND_MORE),
        "chosen_query": urlencode(chosen.as_dict()),
        "letters": [_line(stream, entry) for entry in found.entries],
        "next": found.next,
        "looked_at": found.looked_at if chosen.needs_payload else 0,
        "is_walked": chosen.needs_payload,
        "group": _group(stream, chosen.fingerprint),
    }


def typed(query: Mapping[str, str]) -> dict[str, str]:
    """The filter's fields as they were typed."""
    return {name: query.get(name, "").replace("\x00", "") for name in (*NAMES, "cursor")}


def chosen_of(given: Mapping[str, str]) -> Chosen:
    """Which letters are meant; times without a zone are in the person's own. Raises
    :class:`InvalidInput`."""
    asked: dict[str, Any] = {name: given.get(name, "") for name in NAMES}
    for name in MOMENTS:
        try:
            moment = datetime.fromisoformat(asked[name])
        except ValueError:
            continue
        asked[name] = moment if moment.tzinfo else timezone.make_aware(moment)
    if not asked["field"]:
        asked["value"] = ""
    elif not asked["value"]:
        del asked["value"]
    return Chosen.of(asked)


def _line(stream: LetterStream, entry: Entry) -> Line:
    hiding = redaction.configured_redaction()
    seen = hiding.entry(entry)
    return Line(
        id=entry.id,
        url=links.of_letter(stream, entry.id),
        error=payload.plain(seen.error[:300]),
        error_type=payload.plain(seen.error_type[:120]),
        failed_at=entry.failed_at,
        brief=payload.brief(seen),
        retries=entry.retries,
        size_bytes=entry.size_bytes,
    )


def _group(stream: LetterStream, fingerprint: str) -> LetterGroup | None:
    if not fingerprint:
        return None
    return LetterGroup.objects.filter(stream=stream, fingerprint=fingerprint).first()
