"""Dead letter streams in the database: lookup, registration, lists and growth."""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from breakers.dead_letters.models import MAX_NAME_LENGTH, LetterStream
from breakers.dead_letters.redis_servers import samples
from breakers.dead_letters.sources import DEFAULT_SERVER, OUTBOX_NAME, configured_sources
from controlplane.core.errors import NotFound
from controlplane.core.sql import fetch_all

GONE_SHOWN_FOR = timedelta(days=30)
"""Period for which a deleted stream is listed, as its removed letters may be restored."""
GROWTH_OVER = timedelta(minutes=5)

# Compares with the sample nearest to five minutes ago.
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
    """Return a stream by server and name; an unknown stream is looked up on the server.

    Raises :class:`NotFound` if there is no such dead letter stream, and :class:`ServerUnavailable`.
    """
    sources = configured_sources()
    if (server, name) == (DEFAULT_SERVER, OUTBOX_NAME):
        return get_outbox_stream(now)
    origin = sources.origin_of(name) if is_valid_name(name) else None
    if server in sources.servers and origin is not None:
        stream = LetterStream.objects.filter(server=server, name=name).first()
        if stream is not None:
            return stream
        if samples.sample_stream(server, name).there:
            register_streams(server, [name], now)
            return LetterStream.objects.get(server=server, name=name)
    raise NotFound(f"The Redis server {server!r} has no stream of dead letters {name!r}.")


def get_outbox_stream(now: datetime) -> LetterStream:
    """Return the stream that stands for the outbox's failed messages."""
    defaults = {"source": LetterStream.Source.OUTBOX, "found_at": now}
    stream, _ = LetterStream.objects.get_or_create(
        server=DEFAULT_SERVER, name=OUTBOX_NAME, defaults=defaults
    )
    return stream


def is_valid_name(name: str) -> bool:
    """Return True if PostgreSQL can store a stream of this name."""
    has_surrogates = any("\ud800" <= one <= "\udfff" for one in name)
    return 0 < len(name) <= MAX_NAME_LENGTH and "\0" not in name and not has_surrogates


def register_streams(server: str, names: Collection[str], now: datetime) -> int:
    """Insert rows for streams that have none yet; return how many."""
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
    """Return the streams on configured servers that match a pattern, and the outbox, by name."""
    return keep_served(LetterStream.objects.order_by("server", "name"))


def list_shown(now: datetime) -> list[LetterStream]:
    """Return the streams for the inbox page: streams with an alarm first, then the deepest."""
    rows = keep_shown(LetterStream.objects.all(), now)
    return sorted(rows, key=lambda one: (one.alarmed_at is None, -one.depth, one.server, one.name))


def keep_served(rows: Iterable[LetterStream]) -> list[LetterStream]:
    """Return those of the streams on configured servers that match a pattern, and the outbox."""
    sources = configured_sources()
    return [
        one
        for one in rows
        if one.server in sources.servers
        and (one.name == OUTBOX_NAME or sources.origin_of(one.name) is not None)
    ]


def keep_shown(rows: Iterable[LetterStream], now: datetime) -> list[LetterStream]:
    """Return those of the streams that the inbox page shows."""
    return [
        one
        for one in keep_served(rows)
        if one.gone_at is None or one.gone_at > now - GONE_SHOWN_FOR
    ]


def growth_per_minute(streams: Sequence[LetterStream], now: datetime) -> dict[int, float]:
    """Return the growth of streams, by primary key, in letters per minute; negative if shrinking.

    Growth is measured over the last five minutes, or since a newer stream's first sample.
    """
    this = now.replace(second=0, microsecond=0)
    values: dict[str, Any] = {
        "ids": [one.pk for one in streams],
        "wanted": now - GROWTH_OVER,
        "oldest": this - 2 * GROWTH_OVER,
        "this": this,
    }
    growth = dict.fromkeys((one.pk for one in streams), 0.0)
    for pk, depth, earlier, sampled_at in fetch_all(_GROWTH, values):
        minutes = (now - sampled_at).total_seconds() / 60
        growth[pk] = round((depth - earlier) / minutes, 2) if minutes > 0 else 0.0
    return growth
