"""Periodic sampler of all Redis servers: discovers streams, records depths, updates the index.

Servers are queried in parallel, so that an unavailable server delays no other. One thread writes
the results.
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
from .stream_state import SampledStream

INDEXING_SECONDS = 1.5  # for all streams in one run
GAP_SECONDS = 0.5  # for all streams in one run, in addition
EACH_SECONDS = 1.0
THREADS = 8

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class _ServerSample:
    """Result of querying a server: stream names, next SCAN cursor and samples, or an error."""

    names: frozenset[str] = frozenset()
    cursor: str = ""
    samples: Mapping[str, StreamSample] | None = None
    error: str = ""


def sample_servers(now: datetime) -> int:
    """Sample the streams of all servers and index those that changed; return how many did."""
    known = streams.list_served()
    names: dict[str, list[str]] = {server: [] for server in configured_sources().servers}
    for one in known:
        is_expired = one.gone_at is not None and one.gone_at < now - streams.GONE_SHOWN_FOR
        if one.source == LetterStream.Source.STREAM and not is_expired:
            names[one.server].append(one.name)
    results = _query_servers(names)
    has_new = [_record_server(server, result, now) for server, result in results.items()]
    if any(has_new):
        before = {one.pk for one in known}
        known += [one for one in streams.list_served() if one.pk not in before]
    failed = OutboxMessage.objects.filter(state="failed", discarded_at=None).aggregate(
        failed=Count("pk"), oldest_at=Min("finished_at"), newest_at=Max("finished_at")
    )
    stream_state.record_outbox(**failed, now=now)
    changed = _record_streams(known, results, now)
    _index_changed(changed, now)
    alarms.update_alarms(now)
    return len(changed)


def _query_servers(names: Mapping[str, Sequence[str]]) -> dict[str, _ServerSample]:
    cursors = dict(LetterServer.objects.values_list("name", "cursor"))
    with ThreadPoolExecutor(min(THREADS, len(names))) as threads:
        futures = {
            server: threads.submit(_query_server, server, known, cursors.get(server, ""))
            for server, known in names.items()
        }
        return {server: future.result() for server, future in futures.items()}


def _query_server(server: str, known: Sequence[str], cursor: str) -> _ServerSample:
    """Discover and sample a server's streams; runs in a thread without a database connection."""
    try:
        names, next_cursor = discovery.discover_streams(servers.get_server(server), cursor)
        by_name = samples.sample_streams(server, sorted({*known, *names}))
    except DomainError as error:
        return _ServerSample(cursor=cursor, error=error.detail)
    return _ServerSample(frozenset(names), next_cursor, by_name)


def _record_server(server: str, result: _ServerSample, now: datetime) -> bool:
    """Record a server's availability and its new streams; return True if it has any."""
    is_away = bool(result.error)
    with transaction.atomic():
        LetterServer.objects.bulk_create([LetterServer(name=server)], ignore_conflicts=True)
        row = LetterServer.objects.select_for_update().get(pk=server)
        if row.is_away != is_away or row.since is None:
            row.is_away, row.since = is_away, now
            live.notify_changed(stream_state.TOPIC, f"server:{server}")
            log.info(
                "dead_letters.server_changed", server=server, is_away=is_away, error=result.error
            )
        if not is_away:
            row.asked_at, row.cursor = now, result.cursor
        row.error = result.error[:500]
        row.save()
    return bool(result.names) and streams.register_streams(server, result.names, now) > 0


def _record_streams(
    known: Sequence[LetterStream], results: Mapping[str, _ServerSample], now: datetime
) -> list[SampledStream]:
    """Save the samples of the streams; return those streams to index or to check for gaps."""
    changed: list[SampledStream] = []
    same: list[SampledStream] = []
    for one in known:
        by_name = results[one.server].samples if one.server in results else None
        sample = (by_name or {}).get(one.name)
        if sample is not None:
            (changed if stream_state.has_changed(one, sample) else same).append((one, sample))
    recorded = stream_state.record_samples(changed, now)
    due = [one for one, _ in same if stream_state.is_due(one, now)]
    if due:
        stream_state.record_unchanged(due, now)
    pks = {one.pk for one in due}
    unindexed = [pair for pair in same if pair[1].last > pair[0].indexed_to or pair[0].pk in pks]
    return [*recorded, *unindexed]


def _index_changed(changed: Sequence[SampledStream], now: datetime) -> None:
    """Index these streams for a second each at most, then search them for gaps.

    The random order gives every stream a chance if time runs out.
    """
    deadline = time.monotonic() + INDEXING_SECONDS
    shuffled = random.sample(changed, len(changed))
    for stream, sample in shuffled:
        if sample.last > stream.indexed_to:
            _run_within(deadline, stream, partial(indexer.read_new_entries, stream, sample, now))
    deadline += GAP_SECONDS
    for stream, _ in gaps.find_inconsistent(shuffled):
        _run_within(deadline, stream, partial(gaps.find_gaps, stream, now))


def _run_within(deadline: float, stream: LetterStream, run: Callable[..., bool]) -> None:
    left = deadline - time.monotonic()
    if left <= 0:
        return
    try:
        run(seconds=min(EACH_SECONDS, left))
    except (ServerUnavailable, ServerRefused) as error:
        log.info("dead_letters.stream_unreadable", stream=str(stream), error=error.detail)
