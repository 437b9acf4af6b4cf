"""A store of jobs in one SQLite file, for all threads and processes of one machine."""

import contextlib
import json
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from switchgear.patterns import forks
from switchgear.steps.errors import LeaseLost
from switchgear.steps.records import (
    ApprovalRecord,
    ApprovalState,
    EffectRecord,
    EffectState,
    JobRecord,
    Lease,
    Progress,
    Row,
    StepRecord,
)
from switchgear.steps.sqlite_schema import (
    SCHEMA,
    insert_row,
    select_rows,
    update_job,
    wake_if_answered,
    wake_job,
)

BUSY_SECONDS = 30.0
_OPEN = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_CLAIMABLE = """(status IN ('pending', 'paused')
    OR (status = 'running' AND (heartbeat IS NULL OR :now - heartbeat >= :stuck)))"""
_NOT_UNDONE = """(status = 'failed' AND (NOT is_compensating OR (:is_undoing AND EXISTS (
    SELECT 1 FROM steps WHERE job_id = jobs.id AND steps.status = 'compensation_failed'))))"""


class SQLiteStore:
    """A :class:`~switchgear.steps.store.Store` in the file `path`, readable by its owner only.

    The file contains inputs and outputs of jobs. Do not put it on a network file system, where
    SQLite can't lock. Writes are on disk (`synchronous=FULL`) when a method returns. Methods raise
    :class:`sqlite3.Error` and :class:`OSError`.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        forks.register(self)

    def after_fork(self) -> None:
        """Drop the connection in a forked child, where it must be neither used nor closed."""
        forks.keep_alive(self._connection)
        self._lock = threading.RLock()
        self._connection = None

    def close(self) -> None:
        """Close the connection to the file; the next call opens a new one."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    def add(self, job: JobRecord) -> bool:
        with self._transaction() as connection:
            return insert_row(connection, job, "DO NOTHING") == 1

    def look(self, job_id: str) -> Progress | None:
        with self._transaction("BEGIN") as connection:
            jobs = select_rows(connection, JobRecord, "id = :id", {"id": job_id})
            if not jobs:
                return None
            of_job, given = "job_id = :id ORDER BY rowid", {"id": job_id}
            return Progress(
                job=jobs[0],
                steps=tuple(select_rows(connection, StepRecord, of_job, given)),
                effects=tuple(select_rows(connection, EffectRecord, of_job, given)),
                approvals=tuple(select_rows(connection, ApprovalRecord, of_job, given)),
            )

    def due(self, names: tuple[str, ...], now: float, stuck_seconds: float, most: int) -> list[str]:
        self._fix_future_heartbeats(now)
        with self._transaction("BEGIN") as connection:
            rows = connection.execute(
                f"""SELECT id FROM jobs WHERE {_CLAIMABLE}
                    AND (status != 'paused' OR resume_at <= :now)
                    AND name IN (SELECT value FROM json_each(:names))
                    ORDER BY created_at LIMIT :most""",  # noqa: S608 - our own words.
                {"now": now, "stuck": stuck_seconds, "names": json.dumps(names), "most": most},
            )
            return [row[0] for row in rows]

    def claim(
        self,
        job_id: str,
        worker: str,
        now: float,
        stuck_seconds: float,
        *,
        also_failed: bool = False,
        is_undoing: bool = False,
    ) -> Lease | None:
        self._fix_future_heartbeats(now)
        failed = f"OR {_NOT_UNDONE}" if also_failed else ""
        given = {"id": job_id, "worker": worker, "now": now, "stuck": stuck_seconds}
        with self._transaction() as connection:
            row = connection.execute(
                f"""UPDATE jobs SET status = 'running', epoch = epoch + 1, worker = :worker,
                        heartbeat = :now, started_at = coalesce(started_at, :now),
                        reason = NULL, resume_at = NULL, completed_at = NULL
                    WHERE id = :id AND ({_CLAIMABLE} {failed}) RETURNING epoch""",  # noqa: S608
                {**given, "is_undoing": is_undoing},
            ).fetchone()
        return None if row is None else Lease(job_id, row[0])

    def beat(self, lease: Lease, now: float) -> None:
        with self._transaction() as connection:
            self._check_lease(connection, lease)
            connection.execute("UPDATE jobs SET heartbeat = ? WHERE id = ?", (now, lease.job_id))

    def save(self, lease: Lease, *rows: Row) -> None:
        with self._transaction() as connection:
            self._check_lease(connection, lease)
            for row in rows:
                if isinstance(row, JobRecord):
                    update_job(connection, row)
                else:
                    insert_row(connection, row, "DO UPDATE")
            for row in rows:
                if isinstance(row, ApprovalRecord):
                    wake_if_answered(connection, row)

    def succeeded(self, job_name: str, step: str, key: str) -> StepRecord | None:
        condition = """key = :key AND name = :step AND status = 'succeeded' AND NOT is_reused
            AND EXISTS (SELECT 1 FROM jobs WHERE jobs.id = steps.job_id AND jobs.name = :name
                AND jobs.status IN ('completed', 'failed')) LIMIT 1"""
        given = {"key": key, "step": step, "name": job_name}
        with self._transaction("BEGIN") as connection:
            found = select_rows(connection, StepRecord, condition, given)
        return found[0] if found else None

    def begin(self, lease: Lease, job_name: str, step: StepRecord) -> StepRecord | None:
        condition = """key = :key AND name = :step AND job_id != :job_id AND NOT is_reused
            AND status != 'compensated'
            AND EXISTS (SELECT 1 FROM jobs WHERE jobs.id = steps.job_id AND jobs.name = :name
                AND (steps.status = 'succeeded' OR jobs.status NOT IN ('completed', 'failed')))
            LIMIT 1"""
        given = {"key": step.key, "step": step.name, "job_id": step.job_id, "name": job_name}
        with self._transaction() as connection:
            self._check_lease(connection, lease)
            found = select_rows(connection, StepRecord, condition, given)
            if not found:
                insert_row(connection, step, "DO UPDATE")
        return found[0] if found else None

    def effect(self, job_name: str, wanted: EffectRecord) -> EffectRecord | None:
        with self._transaction("BEGIN") as connection:
            return _find_effect(connection, job_name, wanted)

    def intend(
        self, lease: Lease, job_name: str, wanted: EffectRecord, is_keyed: bool
    ) -> EffectRecord | None:
        with self._transaction() as connection:
            self._check_lease(connection, lease)
            found = _find_effect(connection, job_name, wanted)
            state = None if found is None else found.state
            if state is not EffectState.DONE and (is_keyed or state is not EffectState.UNKNOWN):
                insert_row(connection, wanted, "DO UPDATE")
        return found

    def decide(self, job_id: str, position: int, state: ApprovalState, by: str, now: float) -> int:
        with self._transaction() as connection:
            answered = connection.execute(
                """UPDATE approvals SET state = ?, by = ?, decided_at = ?
                   WHERE job_id = ? AND position = ? AND state = 'open' AND expires_at > ?""",
                (state, by, now, job_id, position, now),
            ).rowcount
            if answered:
                wake_job(connection, job_id)
            return answered

    def settle(self, effect: EffectRecord, state: EffectState) -> bool:
        with self._transaction() as connection:
            settled = connection.execute(
                """UPDATE effects SET state = ? WHERE job_id = ? AND kind = ? AND target = ?
                   AND key = ? AND is_compensation = ? AND state = 'unknown'""",
                (state, effect.job_id, effect.kind, effect.target, effect.key,
                 effect.is_compensation),
            ).rowcount  # fmt: skip
            if settled:
                wake_job(connection, effect.job_id)
            return settled == 1

    def forget(self, before: float) -> int:
        """Delete jobs that ended before `before`, in UNIX seconds, and return their number.

        Their idempotency keys are deleted too: a step or effect with the same key is done again.
        """
        with self._transaction() as connection:
            return connection.execute(
                "DELETE FROM jobs WHERE status IN ('completed', 'failed') AND completed_at < ?",
                (before,),
            ).rowcount

    def _fix_future_heartbeats(self, now: float) -> None:
        """Replace heartbeats later than `now`, left by a clock that was set back, by `now`."""
        future = "status = 'running' AND heartbeat > ?"
        with self._transaction("BEGIN") as connection:
            found = connection.execute(f"SELECT 1 FROM jobs WHERE {future} LIMIT 1", (now,))  # noqa: S608
            if found.fetchone() is None:
                return
        with self._transaction() as connection:
            connection.execute(f"UPDATE jobs SET heartbeat = ? WHERE {future}", (now, now))  # noqa: S608

    def _check_lease(self, connection: sqlite3.Connection, lease: Lease) -> None:
        row = connection.execute(
            "SELECT 1 FROM jobs WHERE id = ? AND epoch = ? AND status = 'running'",
            (lease.job_id, lease.epoch),
        ).fetchone()
        if row is None:
            raise LeaseLost(lease.job_id)

    @contextlib.contextmanager
    def _transaction(self, begin: str = "BEGIN IMMEDIATE") -> Iterator[sqlite3.Connection]:
        """Return a context manager that holds a database transaction.

        By default, the transaction locks the database for writing before it reads. With
        `begin="BEGIN"`, it takes no such lock and may only read.
        """
        with self._lock:
            if self._connection is None:
                self._connection = self._connect()
            connection = self._connection
            connection.execute(begin)
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def _connect(self) -> sqlite3.Connection:
        descriptor = os.open(self._path, _OPEN, 0o600)
        try:
            os.fchmod(descriptor, 0o600)  # SQLite gives its other files the same mode.
        finally:
            os.close(descriptor)
        connection = sqlite3.connect(
            self._path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            _set_up(connection)
        except BaseException:
            connection.close()
            raise
        return connection


def _set_up(connection: sqlite3.Connection) -> None:
    until = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError:
            # SQLite does not wait while another connection switches the mode.
            if time.monotonic() > until:
                raise
            time.sleep(0.01)
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("BEGIN IMMEDIATE")
    for statement in SCHEMA:
        connection.execute(statement)
    connection.execute("COMMIT")


def _find_effect(
    connection: sqlite3.Connection, job_name: str, wanted: EffectRecord
) -> EffectRecord | None:
    condition = """kind = :kind AND target = :target AND key = :key
        AND is_compensation = :is_compensation AND (job_id = :job_id
            OR (state IN ('done', 'unknown') AND NOT is_compensation AND EXISTS (
                SELECT 1 FROM jobs WHERE jobs.id = effects.job_id AND jobs.name = :name)))
        ORDER BY CASE state WHEN 'done' THEN 0 WHEN 'unknown' THEN 1 ELSE 2 END,
            job_id = :job_id DESC LIMIT 1"""
    names = ("kind", "target", "key", "is_compensation", "job_id")
    given = {name: getattr(wanted, name) for name in names}
    found = select_rows(connection, EffectRecord, condition, {**given, "name": job_name})
    return found[0] if found else None
