"""Prometheus metrics, read from PostgreSQL at each scrape, so every process reports the same.

Apps register theirs in modules named `metrics`. Without the database a scrape still reports metrics
of this process.
"""

import functools
import math
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime

import redis
import structlog
from django.db import DatabaseError, InterfaceError
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric

from controlplane.core.clock import db_now
from controlplane.core.registry import FunctionRegistry
from controlplane.core.threads import Bounded, KeptConnection

from . import broker, health, heartbeats, ticks
from . import exposition as metrics_text
from .exposition import gauge
from .liveness import Loop

DATABASE_SECONDS = 2.0

DatabaseReader = Callable[[datetime], Iterable[Metric]]
"""Yields metric families read from the database at a moment."""
ProcessReader = Callable[[], Iterable[Metric]]
"""Yields metric families of this process."""
TokenCheck = Callable[[str, str], None]

log = structlog.get_logger(__name__)
DATABASE_METRICS = FunctionRegistry[DatabaseReader]("metrics")
PROCESS_METRICS = FunctionRegistry[ProcessReader]("metrics")
_token_check: TokenCheck | None = None


def set_token_check(check: TokenCheck) -> None:
    """Set the check of (token, scope), which must not use the database and raises if it fails."""
    global _token_check
    _token_check = check


def token_check() -> TokenCheck | None:
    return _token_check


def exposition(accept: str) -> tuple[bytes, str]:
    """Return all metrics in the best format the scraper accepts, and the content type."""
    return metrics_text.text(_registry(), accept)


def scrape(accept: str) -> metrics_text.Exposition:
    """Return :func:`exposition`, cached for at most :data:`metrics_text.CACHE_SECONDS`.

    It is rebuilt when this process serves another snapshot.
    """
    return scrapes.get(accept)


def process_exposition(accept: str, loop: Loop) -> tuple[bytes, str]:
    """Return :func:`exposition` for a process other than the web, without PostgreSQL."""
    return metrics_text.text(_process_registry(loop), accept)


class _ConsoleCollector:
    """Collects all metrics anew at each scrape."""

    def collect(self) -> Iterator[Metric]:
        yield metrics_text.build_info()
        yield from _in_memory()
        yield from _broker()
        try:
            families = _database.answer()
        except (TimeoutError, DatabaseError, InterfaceError) as error:
            log.warning("metrics.without_database", error=str(error).strip())
            yield gauge(*_DATABASE_UP, 0)
            return
        yield gauge(*_DATABASE_UP, 1)
        yield from families


_DATABASE_UP = ("switchgear_database_up", "1 if PostgreSQL answered this scrape.")


class _ProcessCollector:
    """Metrics of a process other than the web."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop

    def collect(self) -> Iterator[Metric]:
        yield metrics_text.build_info()
        yield from _broker()
        yield gauge(
            "switchgear_loop_rested_seconds",
            "Seconds since the loop of this process last went round.",
            self._loop.rested_seconds,
        )


@functools.cache
def _registry() -> CollectorRegistry:
    return metrics_text.registry(_ConsoleCollector())


@functools.cache
def _process_registry(loop: Loop) -> CollectorRegistry:
    return metrics_text.registry(_ProcessCollector(loop))


def _in_memory() -> Iterator[Metric]:
    present = health.snapshot()
    if present is not None:
        yield from metrics_text.snapshot(present.version, present.age_seconds)
    for read in PROCESS_METRICS.functions():
        yield from read()


def _broker() -> Iterator[Metric]:
    help_text = "1 if Redis answered this scrape."
    try:
        depths = broker.depths()
    except (TimeoutError, redis.RedisError):
        yield gauge("switchgear_redis_up", help_text, 0)
        return
    yield gauge("switchgear_redis_up", help_text, 1)
    family = GaugeMetricFamily(
        "switchgear_worker_queue_depth", "Messages that wait for a worker.", labels=["queue"]
    )
    for queue, depth in depths.items():
        family.add_metric([queue], depth)
    yield family


def _served_version() -> int | None:
    present = health.snapshot()
    return None if present is None else present.version


scrapes = metrics_text.Cache(exposition, _served_version, time.monotonic)


def _from_database() -> list[Metric]:
    now = db_now()
    return [family for read in DATABASE_METRICS.functions() for family in read(now)]


kept_connection = KeptConnection()
_database = Bounded(_from_database, seconds=DATABASE_SECONDS, kept=kept_connection)


@DATABASE_METRICS.add()
def _clockwork(now: datetime) -> Iterator[Metric]:
    late = GaugeMetricFamily(
        "switchgear_tick_late_seconds",
        "How overdue each periodic function is; +Inf if it never ran.",
        labels=["tick"],
    )
    for turn in ticks.turns():
        late.add_metric([turn.tick.name], turn.late_seconds)
    yield late
    silent = GaugeMetricFamily(
        "switchgear_heartbeat_age_seconds",
        "Seconds since each supervised process was last known to be alive; +Inf if it never was.",
        labels=["process"],
    )
    for name, age in {**dict.fromkeys(health.PROCESSES, math.inf), **heartbeats.ages()}.items():
        silent.add_metric([name], age)
    yield silent


@DATABASE_METRICS.add()
def _clock(_now: datetime) -> Iterator[Metric]:
    asked = time.time()
    there = db_now().timestamp()
    yield gauge(
        "switchgear_clock_offset_seconds",
        "Seconds that this machine's clock is ahead of PostgreSQL's.",
        (asked + time.time()) / 2 - there,
    )
