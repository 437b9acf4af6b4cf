"""Termination of stalled database sessions that hold a lock other sessions wait for.

A process that freezes inside a transaction keeps its locks, and every engage would wait for them.
So each statement of a transaction is timed. While one takes longer than `PATIENCE_SECONDS`, a
thread with its own connection searches for sessions of our own role that block others without
progress, and terminates them: PostgreSQL rolls their transactions back, as if the process had died.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg
import structlog
from django.db import Error, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from prometheus_client.core import CounterMetricFamily, Metric
from psycopg.rows import class_row

from controlplane.core.actors import system_actor
from controlplane.core.audit import services as audit
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.ended_sessions import convert_termination
from controlplane.core.metrics import DATABASE_METRICS
from controlplane.core.threads import OWNER_NAME, own_connection, unpooled_connection

PATIENCE_SECONDS = 0.4
"""Duration of a statement after which it may be waiting for a frozen session."""
MAX_IDLE_SECONDS = 0.5
"""Longest idle time of a transaction that blocks others, before its session is terminated."""
MAX_ACTIVE_SECONDS = 0.4
"""Longest observed run of one statement that blocks others."""
SEARCH_INTERVAL_SECONDS = 0.1
ENDED = "lock.holder_ended"
RECORDER = "blockers-record"

# Sessions that wait for a lock themselves are left out: each chain of waiting sessions ends at one
# that doesn't. Waiting for a `virtualxid` doesn't count: only `CREATE INDEX CONCURRENTLY` does so,
# without blocking others.
_BLOCKERS = """
    SELECT pid, backend_start, state_change, application_name, state,
           wait_event_type IS NOT DISTINCT FROM 'Client' AS awaits_client,
           extract(epoch FROM clock_timestamp() - state_change)::float AS seconds
      FROM pg_stat_activity
     WHERE usename = session_user AND datname = current_database()
       AND application_name NOT LIKE %s AND state <> 'idle'
       AND wait_event_type IS DISTINCT FROM 'Lock'
       AND query !~* '^\\s*(commit|end)\\M'
       AND pid IN (SELECT unnest(pg_blocking_pids(waiting.pid)) FROM pg_stat_activity AS waiting
                    WHERE waiting.datname = current_database() AND wait_event_type = 'Lock'
                      AND wait_event <> 'virtualxid')
"""
_END = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE pid = %s AND backend_start = %s AND state_change = %s
"""

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Blocker:
    """A database session that blocks others and waits for no lock, as in `pg_stat_activity`.

    `awaits_client` is True if its client process must send something before it goes on. `seconds`
    is the time since `state_change`.
    """

    pid: int
    backend_start: datetime
    state_change: datetime
    application_name: str
    state: str
    awaits_client: bool
    seconds: float


class StatementWatch:
    """Times transactions' statements; while one takes too long, a thread ends blocking sessions."""

    def __init__(self) -> None:
        self._running: dict[int, float] = {}
        self._has_work = threading.Event()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._raw: psycopg.Connection[Any] | None = None
        self._is_blind = False
        self._active_since: dict[tuple[int, datetime], float] = {}
        os.register_at_fork(after_in_child=self._reset_after_fork)

    def time_statement(
        self, execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: Any
    ) -> Any:
        """Execute and time a statement; raise SessionEnded if its session is terminated."""
        if not context["connection"].in_atomic_block:
            return execute(sql, params, many, context)
        thread = threading.get_ident()
        self._running[thread] = time.monotonic()
        self._wake()
        try:
            with convert_termination():
                return execute(sql, params, many, context)
        finally:
            self._running.pop(thread, None)

    def _wake(self) -> None:
        if not self._has_work.is_set():
            self._has_work.set()
        if self._thread is not None and self._thread.is_alive():
            return
        with self._starting:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="blockers", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while True:
            self._has_work.wait()
            time.sleep(PATIENCE_SECONDS)  # One wake-up per burst, not one per statement.
            self._has_work.clear()
            while running := list(self._running.values()):
                remaining = min(running) + PATIENCE_SECONDS - time.monotonic()
                if remaining <= 0:
                    self._terminate_blockers()
                time.sleep(max(remaining, SEARCH_INTERVAL_SECONDS))
            self._active_since = {}
            self._disconnect()

    def _terminate_blockers(self) -> None:
        try:
            raw = self._connect()
            with raw.cursor(row_factory=class_row(Blocker)) as cursor:
                blockers = cursor.execute(_BLOCKERS, [f"{OWNER_NAME}%"]).fetchall()
            ended = [it for it in self._select_stalled(blockers) if _terminate(raw, it)]
        except psycopg.Error as error:
            self._disconnect()
            if not self._is_blind:  # Warn once per outage.
                log.warning("lock.holder_search_failed", error=str(error).strip())
            self._is_blind = True
            return
        self._is_blind = False
        for blocker in ended:
            log.warning(ENDED, **_log_fields(blocker))
        if ended:
            threading.Thread(target=_record, args=(ended,), name=RECORDER).start()

    def _select_stalled(self, blockers: Sequence[Blocker]) -> Iterator[Blocker]:
        """Yield blockers to terminate: their client is silent, or their statement runs too long.

        The run time counts from the first search that found the statement blocking others.
        """
        now, previous = time.monotonic(), self._active_since
        self._active_since = {}
        for blocker in blockers:
            if blocker.awaits_client:
                if blocker.seconds > MAX_IDLE_SECONDS:
                    yield blocker
                continue
            key = (blocker.pid, blocker.state_change)
            self._active_since[key] = previous.get(key, now)
            if now - self._active_since[key] > MAX_ACTIVE_SECONDS:
                yield blocker

    def _connect(self) -> psycopg.Connection[Any]:
        if self._raw is None:
            params = unpooled_connection().get_connection_params()
            self._raw = psycopg.connect(**{**params, "autocommit": True})
            # Only the role that logged in may end its sessions, not one that it assumed.
            self._raw.execute("SET ROLE NONE")
        return self._raw

    def _disconnect(self) -> None:
        if self._raw is not None:
            self._raw.close()
        self._raw = None

    def _reset_after_fork(self) -> None:
        self._running.clear()
        self._has_work, self._starting = threading.Event(), threading.Lock()
        self._thread = self._raw = None


def _terminate(raw: psycopg.Connection[Any], blocker: Blocker) -> bool:
    """Terminate a session unless its state has changed; return True if it was terminated."""
    values = [blocker.pid, blocker.backend_start, blocker.state_change]
    row = raw.execute(_END, values).fetchone()
    return row is not None and bool(row[0])


def _log_fields(blocker: Blocker) -> dict[str, Any]:
    names = ("pid", "application_name", "state", "seconds")
    return {name: getattr(blocker, name) for name in names}


def _record(ended: Sequence[Blocker]) -> None:
    """Record terminated sessions in the audit trail. Called in its own thread, as it may wait."""
    reason = "It blocked other sessions and made no progress; its transaction was rolled back."
    try:
        with own_connection(), transaction.atomic():
            now = db_now()
            audit.record_many(
                [
                    {
                        "actor": system_actor("database"),
                        "action": ENDED,
                        "target": f"session:{blocker.pid}",
                        "reason": reason,
                        "after": {**_log_fields(blocker), "seconds": round(blocker.seconds, 3)},
                        "now": now,
                    }
                    for blocker in ended
                ]
            )
    except Error as error:
        log.warning("lock.holder_record_failed", error=str(error).strip())


watch = StatementWatch()


def install() -> None:
    """Start timing the statements of all connections that Django opens in this process."""
    connection_created.connect(_watch_connection, dispatch_uid=__name__)


def _watch_connection(connection: BaseDatabaseWrapper, **_kwargs: Any) -> None:
    # Inserted first, because Django's `execute_wrapper()` context removes the last wrapper.
    if watch.time_statement not in connection.execute_wrappers:
        connection.execute_wrappers.insert(0, watch.time_statement)


@DATABASE_METRICS.add()
def lock_holders_ended(_now: datetime) -> Iterator[Metric]:
    family = CounterMetricFamily(
        "switchgear_lock_holders_ended",
        "Database sessions terminated because others waited for their locks.",
    )
    family.add_metric([], AuditEntry.objects.filter(action=ENDED).count())
    yield family
