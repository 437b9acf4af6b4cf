"""Health reports for the probes of orchestrators and load balancers, made within 2 seconds."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

import redis
import structlog
from django.db import DatabaseError, InterfaceError, connection
from django.db.migrations.executor import MigrationExecutor

from controlplane.core import broker, heartbeats
from controlplane.core.sql import fetch_all
from controlplane.core.threads import BoundedCall

from .degradation_levels import READ_ONLY_SQL, Cause

DATABASE_SECONDS = 1.5
RESTORE_MARK = "core_restoring"
"""Table that holds the SHA-256 of a backup while it is being restored."""
HEALTHY, UNHEALTHY, UNKNOWN = "healthy", "unhealthy", "unknown"
READ_ONLY = "read_only"
PROCESSES = ("worker", "beat", "watchdog")


log = structlog.get_logger(__name__)


class SnapshotStatus(Protocol):
    """The snapshot served by this process: its version and age, or None before it is loaded.

    `disk` is a problem with saving it on disk, if any. The data plane implements this interface.
    """

    @property
    def version(self) -> int | None: ...
    @property
    def age_seconds(self) -> float | None: ...
    @property
    def disk(self) -> Cause | None: ...


@dataclass(frozen=True)
class Report:
    """The response to a health probe: an HTTP status and a JSON document."""

    http_status: int
    document: Mapping[str, Any]


snapshot_source: Callable[[], SnapshotStatus] | None = None
"""Function that returns the status of the data plane, set by a process that has one."""
is_starting: Callable[[], bool] = bool
"""Function that returns True while the previous process still serves the port."""
_migrated = False


def read_snapshot_status() -> SnapshotStatus | None:
    """Return the status of the snapshot in this process; None if no data plane runs in it."""
    return None if snapshot_source is None else snapshot_source()


def report_readiness() -> Report:
    """Report the console's readiness: 503 while starting or without the database, else 200."""
    if is_starting():
        return Report(503, {"status": "not_ready", "checks": {"console": "starting"}})
    redis_answer = _redis.begin()
    checks: dict[str, Any] = {"database": HEALTHY, "redis": HEALTHY}
    try:
        ages, is_read_only = _database.result()
    except (TimeoutError, DatabaseError, InterfaceError):
        checks |= {"database": UNHEALTHY, **dict.fromkeys(PROCESSES, UNKNOWN)}
    else:
        alive = {name for name, age in ages.items() if age < heartbeats.STALE_SECONDS}
        checks |= {name: HEALTHY if name in alive else UNHEALTHY for name in PROCESSES}
        if is_read_only:
            checks["database"] = READ_ONLY
    try:
        redis_answer()
    except (TimeoutError, redis.RedisError):
        checks["redis"] = UNHEALTHY
    data_plane = read_snapshot_status()
    age = data_plane.age_seconds if data_plane else None
    checks["snapshot_age_seconds"] = None if age is None else round(age, 3)
    checks["disk"] = HEALTHY
    if data_plane is not None and data_plane.disk is not None:
        checks |= {"disk": UNHEALTHY, "disk_trouble": data_plane.disk.text}
    if checks["database"] == UNHEALTHY:
        log.warning("probe_readiness_failed", checks=checks)
        return Report(503, {"status": "not_ready", "checks": checks})
    healthy = all(checks[name] == HEALTHY for name in ("database", "redis", "disk", *PROCESSES))
    return Report(200, {"status": "ready" if healthy else "degraded", "checks": checks})


def report_worker_readiness(*, needs_redis: bool) -> Report:
    """Report the readiness of a process without a web server: 503 if a dependency is down."""
    checks = {"database": HEALTHY if database_answers() else UNHEALTHY}
    if needs_redis:
        checks["redis"] = HEALTHY if redis_answers() else UNHEALTHY
    if UNHEALTHY in checks.values():
        log.warning("probe_readiness_failed", checks=checks)
        return Report(503, {"status": "not_ready", "checks": checks})
    return Report(200, {"status": "ready", "checks": checks})


def database_answers() -> bool:
    with suppress(TimeoutError, DatabaseError, InterfaceError):
        _database.result()
        return True
    return False


def redis_answers() -> bool:
    with suppress(TimeoutError, redis.RedisError):
        _redis.result()
        return True
    return False


def report_startup() -> Report:
    """Report 200 once migrations are applied and any snapshot served by this process is loaded."""
    data_plane = read_snapshot_status()
    loaded = "elsewhere"
    if data_plane is not None:
        loaded = "missing" if data_plane.version is None else "loaded"
    checks = {"migrations": "applied" if _is_migrated() else "pending", "snapshot": loaded}
    if "pending" in checks.values() or "missing" in checks.values():
        return Report(503, {"status": "starting", "checks": checks})
    return Report(200, {"status": "started", "checks": checks})


def report_liveness() -> Report:
    """Report that the process is alive: always 200, without checking any dependency."""
    return Report(200, {"status": "live"})


def report_data_plane_readiness() -> Report:
    """Report the data plane's readiness: 503 without a loaded snapshot."""
    data_plane = read_snapshot_status()
    if data_plane is None or data_plane.version is None:
        log.warning("probe_readiness_failed", checks={"snapshot": "missing"})
        return Report(503, {"status": "not_ready"})
    return Report(200, {"status": "ready"})


def _query_database() -> tuple[dict[str, float], bool]:
    """Return the ages of the processes' heartbeats, and True if the database is read-only."""
    ((is_read_only,),) = fetch_all(f"SELECT {READ_ONLY_SQL}")
    return heartbeats.load_ages(), is_read_only


def _is_migrated() -> bool:
    """Return True once the schema is migrated and no restore runs; that result is cached."""
    global _migrated
    if not _migrated:
        with suppress(TimeoutError, DatabaseError, InterfaceError):
            _migrated = _pending_migrations.result()
    return _migrated


def _has_nothing_pending() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass(%s) IS NULL", [RESTORE_MARK])
        if cursor.fetchone() != (True,):
            return False
    executor = MigrationExecutor(connection)
    return not executor.migration_plan(executor.loader.graph.leaf_nodes())


_redis = BoundedCall(broker.ping, seconds=broker.SECONDS * 2)
_database = BoundedCall(_query_database, seconds=DATABASE_SECONDS)
_pending_migrations = BoundedCall(_has_nothing_pending, seconds=DATABASE_SECONDS)
