"""Prometheus metrics of the console, read from PostgreSQL at each scrape, while it is reachable.

Every process reports the same database metrics. Apps register theirs in modules named `metrics`.
"""

import functools
import math
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import datetime

import redis
import structlog
from django.db import DatabaseError, InterfaceError
from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric

from controlplane.core.clock import db_now
from controlplane.core.registry import FunctionRegistry
from controlplane.core.threads import BoundedCall, ReusedConnection

from . import broker, health, heartbeats, ticks
from . import exposition as metrics_text
from .exposition import make_family, make_gauge
from .liveness import Loop

DATABASE_SECONDS = 2.0

DatabaseReader = Callable[[datetime], Iterable[Metric]]
"""Function of the current time that yields metric families read from the database."""
ProcessReader = Callable[[], Iterable[Metric]]
"""Function that yields metric families of this process."""

log = structlog.get_logger(__name__)
DATABASE_METRICS = FunctionRegistry[DatabaseReader]("metrics")
PROCESS_METRICS = FunctionRegistry[ProcessReader]("metrics")
token_check: Callable[[str, str], None] | None = None
"""Function of a token and a scope that raises if the token lacks it; uses no database."""


def exposition(accept: str) -> tuple[bytes, str]:
    """Return all metrics in the best format the scraper accepts, and its content type."""
    return metrics_text.encode_metrics(_console_registry, accept)


def process_exposition(accept: str, loop: Loop) -> tuple[bytes, str]:
    """Return the metrics of a process without a web server, without using PostgreSQL."""
    return metrics_text.encode_metrics(_process_registry(loop), accept)


def collect_console() -> list[Metric]:
    """Return all metric families of the console."""
    return list(_ConsoleCollector().collect())


def collect_process(loop: Loop) -> list[Metric]:
    """Return the metric families of a process without a web server."""
    return list(_ProcessCollector(loop).collect())


class _ConsoleCollector:
    def collect(self) -> Iterator[Metric]:
        yield metrics_text.build_info()
        yield from _collect_process()
        yield from _collect_broker()
        is_up, families = 1, list[Metric]()
        try:
            families = _database.result()
        except (TimeoutError, DatabaseError, InterfaceError) as error:
            log.warning("metrics.database_unreachable", error=str(error).strip())
            is_up = 0
        yield make_gauge(
            "switchgear_database_up", "1 if PostgreSQL responded to this scrape.", is_up
        )
        yield from families


class _ProcessCollector:
    def __init__(self, loop: Loop) -> None:
        self._loop = loop

    def collect(self) -> Iterator[Metric]:
        yield metrics_text.build_info()
        yield from _collect_broker()
        yield make_gauge(
            "switchgear_loop_rested_seconds",
            "Seconds since the last iteration of this process's main loop.",
            self._loop.rested_seconds,
        )


_console_registry = metrics_text.make_registry(_ConsoleCollector())


@functools.cache
def _process_registry(loop: Loop) -> CollectorRegistry:
    return metrics_text.make_registry(_ProcessCollector(loop))


def _collect_process() -> Iterator[Metric]:
    present = health.read_snapshot_status()
    if present is not None:
        yield from metrics_text.snapshot_metrics(present.version, present.age_seconds)
    for read in PROCESS_METRICS.functions():
        yield from read()


def _collect_broker() -> Iterator[Metric]:
    depths = None
    with suppress(TimeoutError, redis.RedisError):
        depths = broker.queue_lengths()
    is_up = int(depths is not None)
    yield make_gauge("switchgear_redis_up", "1 if Redis responded to this scrape.", is_up)
    if depths is None:
        return
    yield make_family(
        "switchgear_worker_queue_depth",
        "Messages waiting for a worker; absent while Redis is down.",
        ["queue"],
        (([queue], depth) for queue, depth in depths.items()),
    )


def _served_version() -> int | None:
    present = health.read_snapshot_status()
    return None if present is None else present.version


scrapes = metrics_text.ExpositionCache(exposition, _served_version, time.monotonic)
"""Cache of :func:`exposition`, for a few seconds or until the served snapshot changes."""


def _collect_database() -> list[Metric]:
    now = db_now()
    return [family for read in DATABASE_METRICS.functions() for family in read(now)]


scrape_connection = ReusedConnection()
_database = BoundedCall(_collect_database, seconds=DATABASE_SECONDS, kept=scrape_connection)


@DATABASE_METRICS.add()
def _collect_ticks_and_heartbeats(now: datetime) -> Iterator[Metric]:
    yield make_family(
        "switchgear_tick_late_seconds",
        "Seconds by which each periodic task is overdue; +Inf if it never ran.",
        ["tick"],
        (([status.tick.name], status.late_seconds) for status in ticks.list_statuses()),
    )
    ages = dict.fromkeys(health.PROCESSES, math.inf) | heartbeats.load_ages()
    yield make_family(
        "switchgear_heartbeat_age_seconds",
        "Seconds since the last heartbeat of worker, beat and watchdog; +Inf if there was none.",
        ["process"],
        (([name], age) for name, age in ages.items()),
    )


@DATABASE_METRICS.add()
def _collect_clock_offset(_now: datetime) -> Iterator[Metric]:
    before = time.time()
    database_time = db_now().timestamp()
    yield make_gauge(
        "switchgear_clock_offset_seconds",
        "Seconds by which this machine's clock is ahead of PostgreSQL's.",
        (before + time.time()) / 2 - database_time,
    )
