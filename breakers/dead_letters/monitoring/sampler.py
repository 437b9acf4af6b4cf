"""The sampler of all servers, every few seconds: new streams, depths, arrivals and gaps.

Servers are queried concurrently, so that an unavailable one delays no other. Results are written by
one thread.
"""

import random
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from functools import partial

import structlog
from django.db import transaction
from django.db.models import Count, Max, Min

from breakers.dead_letters.models import LetterServer, LetterStream
from breakers.dead_letters.redis_servers import samples, servers
from breakers.dead_letters.redis_servers.samples import StreamSample
from breakers.dead_letters.redis_servers.servers import ServerRefused, ServerUnavailable
from breakers.dead_letters.sources import configured_sources
from controlplane.core.errors import DomainError
from controlplane.core.live import change_notices as live
from controlplane.core.outbox.models import OutboxMessage

from . import alarms, discovery, gaps, indexer, stream_state, streams

READING_SECONDS = 1.5  # of a turn, for all streams
LOOKING_SECONDS = 0.5  # for what vanished, besides
EACH_SECONDS = 1.0
THREADS = 8

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class _ServerSample:
    """The answer of a server: discovered names, the next cursor and samples; or the error."""

    names: frozenset[str] = frozenset()
    cursor: str = ""
    samples: Mapping[str, StreamSample] | None = None
    error: str = ""


def sample_servers(now: datetime) -> int:
    """Sample every server, then index the streams that changed while there is time.

    Return how many changed.
    """
    known = streams.list_served()
    names: dict[str, list[str]] = {server: [] for server in configured_sources().servers}
    for one in known:
        if one.source == LetterStream.Source.STREAM and not _is_forgotten(one, now):
            names[one.server].append(one.name)
    seen = _query_servers(names)
    is_more = [_record_server(server, said, now) for server, said in seen.items()]
    if any(is_more):
        before = {one.pk for one in known}
        known += [one for one in streams.list_served() if one.pk not in before]
    _sample_outbox(now)
    news = _record_streams(known, seen, now)
    _index_changed(news, now)
    alarms.update_alarms(now)
    return len(news)


def _is_forgotten(stream: LetterStream, now: datetime) -> bool:
    return stream.gone_at is not None and stream.gone_at < now - streams.GONE_SHOWN_FOR


def _query_servers(names: Mapping[str, Sequence[str]]) -> dict[str, _ServerSample]:
    cursors = dict(LetterServer.objects.values_list("name", "cursor"))
    with ThreadPoolExecutor(min(THREADS, len(names))) as threads:
        asked = {
            server: threads.submit(_query_server, server, known, cursors.get(server, ""))
            for server, known in names.items()
        }
        return {server: said.result() for server, said in asked.items()}


def _query_server(server: str, known: Sequence[str], cursor: str) -> _ServerSample:
    """Query one server. It runs in a thread without a database connection."""
    try:
        found = discovery.discover_streams(servers.get_server(server), cursor)
        stand = samples.sample_streams(server, sorted({*known, *found.names}))
    except DomainError as error:
        return _ServerSample(cursor=cursor, error=error.detail)
    return _ServerSample(found.names, found.cursor, stand)


def _record_server(server: str, said: _ServerSample, now: datetime) -> bool:
    """Record a server's availability; return True if it has new streams."""
    is_away = bool(said.error)
    with transaction.atomic():
        LetterServer.objects.bulk_create([LetterServer(name=server)], ignore_conflicts=True)
        row = LetterServer.objects.select_for_update().get(pk=server)
        if row.is_away != is_away or row.since is None:
            row.is_away, row.since = is_away, now
            live.notify_changed(stream_state.TOPIC, f"server:{server}")
            log.info("dead_letters.server", server=server, is_away=is_away, said=said.error)
        if not is_away:
            row.asked_at, row.cursor = now, said.cursor
        row.error = said.error[:500]
        row.save()
    return bool(said.names) and streams.register_streams(server, said.names, now) > 0


def _record_streams(
    known: Sequence[LetterStream], seen: Mapping[str, _ServerSample], now: datetime
) -> list[tuple[LetterStream, StreamSample]]:
    """Record the samples; return the streams that have to be indexed or checked."""
    changed: list[tuple[LetterStream, StreamSample]] = []
    same: list[tuple[LetterStream, StreamSample]] = []
    for one in known:
        stand = seen[one.server].samples if one.server in seen else None
        sample = (stand or {}).get(one.name)
        if sample is not None:
            (changed if stream_state.has_changed(one, sample) else same).append((one, sample))
    noted = stream_state.record_samples(changed, now)
    due = {one.pk for one, _ in same if stream_state.is_due(one, now)}
    if due:
        stream_state.record_unchanged([one for one, _ in same if one.pk in due], now)
    left = [one for one in same if one[1].last > one[0].indexed_to or one[0].pk in due]
    return [*noted, *left]


def _index_changed(news: Sequence[tuple[LetterStream, StreamSample]], now: datetime) -> None:
    """Index changed streams, for a second each at most, then look for gaps.

    The order is random, so that each gets its turn.
    """
    deadline = time.monotonic() + READING_SECONDS
    mixed = random.sample(news, len(news))
    for stream, sample in mixed:
        if sample.last > stream.indexed_to:
            _run_within(deadline, stream, partial(indexer.read_new_entries, stream, sample, now))
    deadline += LOOKING_SECONDS
    for stream, _ in gaps.find_inconsistent(mixed):
        _run_within(deadline, stream, partial(gaps.find_gaps, stream, now))


def _run_within(deadline: float, stream: LetterStream, go_on: Callable[..., bool]) -> None:
    """Continue with a stream unless the time is over."""
    left = deadline - time.monotonic()
    if left <= 0:
        return
    try:
        go_on(seconds=min(EACH_SECONDS, left))
    except (ServerUnavailable, ServerRefused) as error:
        log.info("dead_letters.not_read", stream=str(stream), error=error.detail)


def _sample_outbox(now: datetime) -> None:
    failed = OutboxMessage.objects.filter(state="failed", discarded_at=None)
    found = failed.aggregate(
        count=Count("pk"), oldest=Min("finished_at"), newest=Max("finished_at")
    )
    stream_state.record_outbox(found["count"], found["oldest"], found["newest"], now=now)
