"""Prometheus metrics of the console, read from PostgreSQL at each scrape.

Every process reports the same database metrics. Apps register theirs in modules named `metrics`.
While the database is unreachable, a scrape reports only the metrics of this process.
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
from controlplane.core.threads import BoundedCall, ReusedConnection

from . import broker, health, heartbeats, ticks
from . import exposition as metrics_text
from .exposition import make_gauge
from .liveness import Loop

DATABASE_SECONDS = 2.0

DatabaseReader = Callable[[datetime], Iterable[Metric]]
"""Function that yields metric families read from the database at a time."""
ProcessReader = Callable[[], Iterable[Metric]]
"""Function that yields metric families of this process."""
TokenCheck = Callable[[str, str], None]

log = structlog.get_logger(__name__)
DATABASE_METRICS = FunctionRegistry[DatabaseReader]("metrics")
PROCESS_METRICS = FunctionRegistry[ProcessReader]("metrics")
_token_check: TokenCheck | None = None


def set_token_check(check: TokenCheck) -> None:
    """Set the check of a token and a scope, which raises on failure and uses no database."""
    global _token_check
    _token_check = check


def get_token_check() -> TokenCheck | None:
    return _token_check


def exposition(accept: str) -> tuple[bytes, str]:
    """Return all metrics in the best format the scraper accepts, and its content type."""
    return metrics_text.encode_metrics(_registry(), accept)


def scrape(accept: str) -> metrics_text.Exposition:
    """Return :func:`exposition`, cached for a few seconds or until the served snapshot changes."""
    return scrapes.get(accept)


def process_exposition(accept: str, loop: Loop) -> tuple[bytes, str]:
    """Return the metrics of a process without a web server, without using PostgreSQL."""
    return metrics_text.encode_metrics(_process_registry(loop), accept)


class _ConsoleCollector:
    def collect(self) -> Iterator[Metric]:
        yield metrics_text.build_info()
        yield from _collect_process()
        yield from _collect_broker()
        try:
            families = _database.result()
        except (TimeoutError, DatabaseError, InterfaceError) as error:
            log.warning("metrics.without_database", error=str(error).strip())
            yield make_gauge(*_DATABASE_UP, 0)
            return
        yield make_gauge(*_DATABASE_UP, 1)
        yield from families


_DATABASE_UP = ("switchgear_database_up", "1 if PostgreSQL answered this scrape.")


class _ProcessCollector:
    def __init__(self, loop: Loop) -> None:
        self._loop = loop

    def collect(self) -> Iterator[Metric]:
        yield metrics_text.build_info()
        yield from _collect_broker()
        yield make_gauge(
            "switchgear_loop_rested_seconds",
            "Seconds since the loop of this process last went round.",
            self._loop.rested_seconds,
        )


@functools.cache
def _registry() -> CollectorRegistry:
    return metrics_text.make_registry(_ConsoleCollector())


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
    help_text = "1 if Redis answered this scrape."
    try:
        depths = broker.queue_lengths()
    except (TimeoutError, redis.RedisError):
        yield make_gauge("switchgear_redis_up", help_text, 0)
        return
    yield make_gauge("switchgear_redis_up", help_text, 1)
    family = GaugeMetricFamily(
        "switchgear_worker_queue_depth", "Messages that wait for a worker.", labels=["queue"]
    )
    for queue, depth in depths.items():
        family.add_metric([queue], depth)
    yield family


def _served_version() -> int | None:
    present = health.read_snapshot_status()
    return None if present is None else present.version


scrapes = metrics_text.ExpositionCache(exposition, _served_version, time.monotonic)


def _collect_database() -> list[Metric]:
    now = db_now()
    return [family for read in DATABASE_METRICS.functions() for family in read(now)]


scrape_connection = ReusedConnection()
_database = BoundedCall(_collect_database, seconds=DATABASE_SECONDS, kept=scrape_connection)


@DATABASE_METRICS.add()
def _collect_ticks_and_heartbeats(now: datetime) -> Iterator[Metric]:
    late = GaugeMetricFamily(
        "switchgear_tick_late_seconds",
        "How overdue each periodic function is; +Inf if it never ran.",
        labels=["tick"],
    )
    for turn in ticks.list_statuses():
        late.add_metric([turn.tick.name], turn.late_seconds)
    yield late
    heartbeat_ages = GaugeMetricFamily(
        "switchgear_heartbeat_age_seconds",
        "Seconds since each supervised process was last known to be alive; +Inf if it never was.",
        labels=["process"],
    )
    for name, age in {
        **dict.fromkeys(health.PROCESSES, math.inf),
        **heartbeats.load_ages(),
    }.items():
        heartbeat_ages.add_metric([name], age)
    yield heartbeat_ages


@DATABASE_METRICS.add()
def _collect_clock_offset(_now: datetime) -> Iterator[Metric]:
    before = time.time()
    database_time = db_now().timestamp()
    yield make_gauge(
        "switchgear_clock_offset_seconds",
        "Seconds that this machine's clock is ahead of PostgreSQL's.",
        (before + time.time()) / 2 - database_time,
    )
