"""Known streams of dead letters: look-up, listing and growth."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any

from breakers.dead_letters.models import MAX_NAME_LENGTH, LetterStream
from breakers.dead_letters.redis_servers import samples
from breakers.dead_letters.sources import DEFAULT_SERVER, OUTBOX_NAME, configured_sources
from breakers.sql import fetch_all
from controlplane.core.errors import NotFound

GONE_SHOWN_FOR = timedelta(days=30)
"""Time for which a gone stream is listed, as its removed letters may be restored."""
GROWTH_OVER = timedelta(minutes=5)

# From the last minute that was over by then, or else from the first there is since.
_GROWTH = """
    SELECT stream.id, stream.depth, earlier.depth, earlier.sampled_at
    FROM breakers_letterstream stream
    JOIN LATERAL (
        SELECT depth, sampled_at FROM breakers_depthminute
        WHERE stream_id = stream.id AND minute >= %(oldest)s AND minute < %(this)s
        ORDER BY abs(extract(epoch FROM sampled_at - %(wanted)s::timestamptz)) LIMIT 1
    ) earlier ON true
    WHERE stream.id = ANY(%(ids)s)
"""


def find_stream(server: str, name: str, now: datetime) -> LetterStream:
    """Return the stream of this name on this server, also one not discovered yet, or gone.

    Raises :class:`NotFound` if it is no stream of dead letters, and :class:`ServerUnavailable` if
    the server has to be asked.
    """
    sources = configured_sources()
    if (server, name) == (DEFAULT_SERVER, OUTBOX_NAME):
        return get_outbox_stream(now)
    origin = sources.origin_of(name) if is_valid_name(name) else None
    if server not in sources.servers or origin is None:
        raise _not_found(server, name)
    known = LetterStream.objects.filter(server=server, name=name).first()
    if known is not None:
        return known
    if not samples.sample_stream(server, name).there:
        raise _not_found(server, name)
    register_streams(server, [name], now)
    return LetterStream.objects.get(server=server, name=name)


def get_outbox_stream(now: datetime) -> LetterStream:
    """Return the stream of the outbox's failed messages."""
    found, _ = LetterStream.objects.get_or_create(
        server=DEFAULT_SERVER,
        name=OUTBOX_NAME,
        defaults={"source": LetterStream.Source.OUTBOX, "found_at": now},
    )
    return found


def is_valid_name(name: str) -> bool:
    """Return True if a stream of this name can be stored: text that fits."""
    return 0 < len(name) <= MAX_NAME_LENGTH and "\0" not in name and _is_text(name)


def register_streams(server: str, names: Collection[str], now: datetime) -> int:
    """Register existing streams by name; return how many are new."""
    sources = configured_sources()
    origins = {name: sources.origin_of(name) for name in names if is_valid_name(name)}
    rows = [
        LetterStream(server=server, name=name, origin=origin[:MAX_NAME_LENGTH], found_at=now)
        for name, origin in sorted(origins.items())
        if origin is not None
    ]
    before = LetterStream.objects.filter(server=server, name__in=origins).count()
    LetterStream.objects.bulk_create(rows, ignore_conflicts=True)
    return len(rows) - before


def list_served() -> list[LetterStream]:
    """Return every configured stream and the outbox, by name."""
    sources = configured_sources()
    rows = LetterStream.objects.filter(server__in=sources.servers).order_by("server", "name")
    return [
        one for one in rows if one.name == OUTBOX_NAME or sources.origin_of(one.name) is not None
    ]


def list_shown(now: datetime) -> list[LetterStream]:
    """Return the streams of the inbox: those with an alarm first, then the deepest."""
    rows = [
        one for one in list_served() if one.gone_at is None or one.gone_at > now - GONE_SHOWN_FOR
    ]
    return sorted(rows, key=lambda one: (one.alarmed_at is None, -one.depth, one.server, one.name))


def growth_per_minute(streams: Sequence[LetterStream], now: datetime) -> dict[int, float]:
    """Return the growth of each stream in letters a minute, by primary key; negative if it shrank.

    It is measured over the last five minutes, or as long as the stream is known.
    """
    this = now.replace(second=0, microsecond=0)
    values: dict[str, Any] = {
        "ids": [one.pk for one in streams],
        "wanted": now - GROWTH_OVER,
        "oldest": this - 2 * GROWTH_OVER,
        "this": this,
    }
    rows = fetch_all(_GROWTH, values)
    found = dict.fromkeys((one.pk for one in streams), 0.0)
    for pk, depth, earlier, sampled_at in rows:
        minutes = (now - sampled_at).total_seconds() / 60
        found[pk] = round((depth - earlier) / minutes, 2) if minutes > 0 else 0.0
    return found


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _not_found(server: str, name: str) -> NotFound:
    return NotFound(f"There is no stream of dead letters {name!r} on the Redis server {server!r}.")
