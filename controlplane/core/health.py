"""Health reports for the probes of orchestrators and load balancers.

Every call to PostgreSQL or Redis has a timeout, so a report takes at most 2 seconds.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import redis
import structlog
from django.db import DatabaseError, InterfaceError, connection
from django.db.migrations.executor import MigrationExecutor

from controlplane.core import broker, heartbeats
from controlplane.core.threads import Bounded

from .degradation_levels import READ_ONLY_SQL, Cause

DATABASE_SECONDS = 1.5
RESTORE_MARK = "core_restoring"
"""A table that exists while a backup is being restored; it names the backup."""
HEALTHY, UNHEALTHY, UNKNOWN = "healthy", "unhealthy", "unknown"
READ_ONLY = "read_only"
PROCESSES = ("worker", "beat", "watchdog")


log = structlog.get_logger(__name__)


class SnapshotStatus(Protocol):
    """State of this process's data plane; version and age are None before a snapshot is loaded."""

    @property
    def version(self) -> int | None: ...
    @property
    def age_seconds(self) -> float | None: ...
    @property
    def disk(self) -> Cause | None: ...


@dataclass(frozen=True)
class Report:
    """An answer to a probe: the HTTP status, and the document."""

    http_status: int
    document: Mapping[str, Any]


_snapshot_source: Callable[[], SnapshotStatus] | None = None
_is_starting: Callable[[], bool] = bool
_migrated = False


def set_snapshot_source(source: Callable[[], SnapshotStatus]) -> None:
    """Name the data plane that runs in this process; the wiring does, at start-up."""
    global _snapshot_source
    _snapshot_source = source


def set_starting(is_starting: Callable[[], bool]) -> None:
    """Name a function that is True while another process still answers on this one's port."""
    global _is_starting
    _is_starting = is_starting


def snapshot() -> SnapshotStatus | None:
    """Return the state of this process's data plane, or None if it runs elsewhere."""
    return None if _snapshot_source is None else _snapshot_source()


def ready() -> Report:
    """Report whether this process can do its work: 503 without the database, or while starting."""
    if _is_starting():
        return Report(503, {"status": "not_ready", "checks": {"console": "starting"}})
    redis_answer = _redis.begin()
    checks: dict[str, Any] = {"database": HEALTHY, "redis": HEALTHY}
    try:
        ages, is_read_only = _database.answer()
    except (TimeoutError, DatabaseError, InterfaceError):
        checks |= {"database": UNHEALTHY, **dict.fromkeys(PROCESSES, UNKNOWN)}
    else:
        checks |= {name: _life(ages.get(name)) for name in PROCESSES}
        if is_read_only:
            checks["database"] = READ_ONLY
    try:
        redis_answer()
    except (TimeoutError, redis.RedisError):
        checks["redis"] = UNHEALTHY
    present = snapshot()
    age = present.age_seconds if present else None
    checks["snapshot_age_seconds"] = None if age is None else round(age, 3)
    checks["disk"] = HEALTHY
    if present is not None and present.disk is not None:
        checks |= {"disk": UNHEALTHY, "disk_trouble": present.disk.text}
    return _judge(checks)


def ready_for_work(*, needs_redis: bool) -> Report:
    """Report the readiness of a process that serves no requests: 503 if a dependency is down."""
    checks = {"database": HEALTHY if database_answers() else UNHEALTHY}
    if needs_redis:
        checks["redis"] = HEALTHY if redis_answers() else UNHEALTHY
    if UNHEALTHY in checks.values():
        log.warning("probe_readiness_failed", checks=checks)
        return Report(503, {"status": "not_ready", "checks": checks})
    return Report(200, {"status": "ready", "checks": checks})


def database_answers() -> bool:
    """Return True if PostgreSQL answers within the timeout."""
    try:
        _database.answer()
    except (TimeoutError, DatabaseError, InterfaceError):
        return False
    return True


def redis_answers() -> bool:
    """Return True if Redis answers within the timeout."""
    try:
        _redis.answer()
    except (TimeoutError, redis.RedisError):
        return False
    return True


def started() -> Report:
    """Report startup: the schema is migrated and, if served here, a snapshot is loaded."""
    present = snapshot()
    checks = {
        "migrations": "applied" if _is_migrated() else "pending",
        "snapshot": "elsewhere" if present is None else _loaded(present),
    }
    begun = checks["migrations"] == "applied" and checks["snapshot"] != "missing"
    status = "started" if begun else "starting"
    return Report(200 if begun else 503, {"status": status, "checks": checks})


def live() -> Report:
    """Report that this process answers; no dependency is checked."""
    return Report(200, {"status": "live"})


def ready_data() -> Report:
    """Report readiness of the data plane: 503 without a loaded snapshot."""
    present = snapshot()
    if present is None or present.version is None:
        log.warning("probe_readiness_failed", checks={"snapshot": "missing"})
        return Report(503, {"status": "not_ready"})
    return Report(200, {"status": "ready"})


def _judge(checks: Mapping[str, Any]) -> Report:
    if checks["database"] == UNHEALTHY:
        log.warning("probe_readiness_failed", checks=dict(checks))
        return Report(503, {"status": "not_ready", "checks": checks})
    healthy = all(checks[name] == HEALTHY for name in ("database", "redis", "disk", *PROCESSES))
    return Report(200, {"status": "ready" if healthy else "degraded", "checks": checks})


def _query_database() -> tuple[dict[str, float], bool]:
    """Return the ages of heartbeats, and True if the database refuses changes."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {READ_ONLY_SQL}")
        (is_read_only,) = cursor.fetchone()
    return heartbeats.ages(), is_read_only


def _life(age_seconds: float | None) -> str:
    alive = age_seconds is not None and age_seconds < heartbeats.STALE_SECONDS
    return HEALTHY if alive else UNHEALTHY


def _loaded(present: SnapshotStatus) -> str:
    return "missing" if present.version is None else "loaded"


def _is_migrated() -> bool:
    """Return True if the schema is migrated and no restore is running.

    True is cached, because migrations aren't reverted under a running process.
    """
    global _migrated
    if not _migrated:
        try:
            _migrated = _nothing_to_migrate.answer()
        except (TimeoutError, DatabaseError, InterfaceError):
            return False
    return _migrated


def _plan_is_empty() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass(%s) IS NULL", [RESTORE_MARK])
        if cursor.fetchone() != (True,):
            return False
    executor = MigrationExecutor(connection)
    return not executor.migration_plan(executor.loader.graph.leaf_nodes())


_redis = Bounded(broker.ping, seconds=broker.SECONDS * 2)
_database = Bounded(_query_database, seconds=DATABASE_SECONDS)
_nothing_to_migrate = Bounded(_plan_is_empty, seconds=DATABASE_SECONDS)
