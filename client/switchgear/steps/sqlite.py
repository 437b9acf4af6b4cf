"""Jobs in one SQLite file, for all threads and processes of one machine."""

import contextlib
import json
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from switchgear.patterns import forks
from switchgear.steps.errors import LeaseLost
from switchgear.steps.records import (
    ApprovalRecord,
    ApprovalState,
    EffectRecord,
    EffectState,
    JobRecord,
    JobStatus,
    Lease,
    Progress,
    Row,
    StepRecord,
    StepStatus,
)
from switchgear.steps.schema import SCHEMA, TABLES

BUSY_SECONDS = 30.0
_OPEN = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_CLAIMABLE = """(status IN ('pending', 'paused')
    OR (status = 'running' AND (heartbeat IS NULL OR abs(:now - heartbeat) >= :stuck)))"""

R = TypeVar("R", JobRecord, StepRecord, EffectRecord, ApprovalRecord)


class SQLiteStore:
    """A :class:`~switchgear.steps.store.Store` in the file `path`, which only its owner can read:
    it holds inputs and outputs. Not for a network's file system: SQLite can't lock there.

    Everything is on the disk (`synchronous=FULL`) when a method returns. Raises
    :class:`sqlite3.Error` and :class:`OSError`.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        forks.register(self)

    def after_fork(self) -> None:
        """SQLite's connections must not be carried into a child, nor closed there."""
        forks.forsake(self._connection)
        self._lock = threading.RLock()
        self._connection = None

    def close(self) -> None:
        """Until the next use."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    def add(self, job: JobRecord) -> bool:
        with self._transaction() as connection:
            return _insert(connection, job, "DO NOTHING") == 1

    def look(self, job_id: str) -> Progress | None:
        with self._transaction("BEGIN") as connection:
            jobs = _select(connection, JobRecord, "id = :id", {"id": job_id})
            if not jobs:
                return None
            of_job, given = "job_id = :id ORDER BY rowid", {"id": job_id}
            return Progress(
                job=jobs[0],
                steps=tuple(_select(connection, StepRecord, of_job, given)),
                effects=tuple(_select(connection, EffectRecord, of_job, given)),
                approvals=tuple(_select(connection, ApprovalRecord, of_job, given)),
            )

    def due(self, names: tuple[str, ...], now: float, stuck_seconds: float, most: int) -> list[str]:
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
        self, job_id: str, worker: str, now: float, stuck_seconds: float, *, also_failed: bool
    ) -> Lease | None:
        failed = "OR (status = 'failed' AND NOT is_compensating)" if also_failed else ""
        with self._transaction() as connection:
            row = connection.execute(
                f"""UPDATE jobs SET status = 'running', epoch = epoch + 1, worker = :worker,
                        heartbeat = :now, started_at = coalesce(started_at, :now),
                        reason = NULL, resume_at = NULL, completed_at = NULL
                    WHERE id = :id AND ({_CLAIMABLE} {failed}) RETURNING epoch""",  # noqa: S608
                {"id": job_id, "worker": worker, "now": now, "stuck": stuck_seconds},
            ).fetchone()
        return None if row is None else Lease(job_id, row[0])

    def beat(self, lease: Lease, now: float) -> None:
        with self._transaction() as connection:
            self._hold(connection, lease)
            connection.execute("UPDATE jobs SET heartbeat = ? WHERE id = ?", (now, lease.job_id))

    def save(self, lease: Lease, *rows: Row) -> None:
        with self._transaction() as connection:
            self._hold(connection, lease)
            for row in rows:
                if isinstance(row, JobRecord):
                    _update_job(connection, row)
                elif isinstance(row, ApprovalRecord) and row.state is ApprovalState.OPEN:
                    _insert(connection, row, "DO NOTHING")  # It may be answered by now.
                else:
                    _insert(connection, row, "DO UPDATE")
            for row in rows:
                if isinstance(row, ApprovalRecord):
                    _wake_if_answered(connection, row)

    def succeeded(self, job_name: str, key: str) -> StepRecord | None:
        condition = """key = :key AND status = :status AND NOT is_reused
            AND job_id IN (SELECT id FROM jobs WHERE name = :name) LIMIT 1"""
        given = {"key": key, "status": StepStatus.SUCCEEDED, "name": job_name}
        with self._transaction("BEGIN") as connection:
            found = _select(connection, StepRecord, condition, given)
        return found[0] if found else None

    def effect(self, job_id: str, job_name: str, key: str) -> EffectRecord | None:
        condition = """key = :key AND (job_id = :job_id OR (state = 'done'
                AND job_id IN (SELECT id FROM jobs WHERE name = :name)))
            ORDER BY state = 'done' DESC, job_id = :job_id DESC LIMIT 1"""
        given = {"key": key, "job_id": job_id, "name": job_name}
        with self._transaction("BEGIN") as connection:
            found = _select(connection, EffectRecord, condition, given)
        return found[0] if found else None

    def decide(self, job_id: str, position: int, state: ApprovalState, by: str, now: float) -> int:
        with self._transaction() as connection:
            answered = connection.execute(
                """UPDATE approvals SET state = ?, by = ?, decided_at = ?
                   WHERE job_id = ? AND position = ? AND state = 'open' AND expires_at > ?""",
                (state, by, now, job_id, position, now),
            ).rowcount
            if answered:
                _wake(connection, job_id)
            return answered

    def settle(self, job_id: str, key: str, state: EffectState) -> bool:
        with self._transaction() as connection:
            settled = connection.execute(
                """UPDATE effects SET state = ? WHERE job_id = ? AND key = ?
                   AND state = 'unknown'""",
                (state, job_id, key),
            ).rowcount
            if settled:
                _wake(connection, job_id)
            return settled == 1

    def forget(self, before: float) -> int:
        """Let go of jobs that were over at this moment, with all that belongs to them, their keys
        too: a step or effect of the same key is done again then. Gives how many those were."""
        with self._transaction() as connection:
            return connection.execute(
                "DELETE FROM jobs WHERE status IN ('completed', 'failed') AND completed_at < ?",
                (before,),
            ).rowcount

    def _hold(self, connection: sqlite3.Connection, lease: Lease) -> None:
        row = connection.execute(
            "SELECT 1 FROM jobs WHERE id = ? AND epoch = ? AND status = 'running'",
            (lease.job_id, lease.epoch),
        ).fetchone()
        if row is None:
            raise LeaseLost(lease.job_id)

    @contextlib.contextmanager
    def _transaction(self, begin: str = "BEGIN IMMEDIATE") -> Iterator[sqlite3.Connection]:
        """One that waits for those of others before it reads, or reads one state of all."""
        with self._lock:
            if self._connection is None:
                self._connection = self._opened()
            connection = self._connection
            connection.execute(begin)
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def _opened(self) -> sqlite3.Connection:
        descriptor = os.open(self._path, _OPEN, 0o600)
        try:
            os.fchmod(descriptor, 0o600)  # SQLite gives its other files the same rights.
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
        except sqlite3.OperationalError:  # It does not wait for others who do the same.
            if time.monotonic() > until:
                raise
            time.sleep(0.01)
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("BEGIN IMMEDIATE")
    for statement in SCHEMA:
        connection.execute(statement)
    connection.execute("COMMIT")


def _insert(connection: sqlite3.Connection, row: Row, conflict: str) -> int:
    table = TABLES[type(row)]
    values = {each.name: getattr(row, each.name) for each in fields(row)}
    for name in table.json:
        values[name] = json.dumps(values[name])
    if conflict == "DO UPDATE":
        conflict += " SET " + ", ".join(f"{name} = excluded.{name}" for name in values)
    return connection.execute(
        f"""INSERT INTO {table.name} ({", ".join(values)})
            VALUES ({", ".join(f":{name}" for name in values)})
            ON CONFLICT ({", ".join(table.key)}) {conflict}""",  # noqa: S608 - names of fields.
        values,
    ).rowcount


def _select(
    connection: sqlite3.Connection, kind: type[R], condition: str, given: Mapping[str, object]
) -> list[R]:
    table = TABLES[kind]
    names = [each.name for each in fields(kind)]
    found = connection.execute(
        f"SELECT {', '.join(names)} FROM {table.name} WHERE {condition}",  # noqa: S608
        given,
    )
    as_is: Callable[[Any], Any] = lambda value: value  # noqa: E731
    reads = [table.read.get(name, as_is) for name in names]
    return [
        kind(**{name: read(value) for name, read, value in zip(names, reads, row, strict=True)})
        for row in found
    ]


def _update_job(connection: sqlite3.Connection, job: JobRecord) -> None:
    """What its worker knows of it; signs of life and epochs are not among that."""
    names = ("status", "is_compensating", "current", "reason", "resume_at", "completed_at")
    changes = ", ".join(f"{name} = :{name}" for name in names)
    connection.execute(
        f"UPDATE jobs SET {changes} WHERE id = :id",  # noqa: S608 - names of fields.
        {name: getattr(job, name) for name in (*names, "id")},
    )


def _wake_if_answered(connection: sqlite3.Connection, asked: ApprovalRecord) -> None:
    """An answer may come between the question and the pause."""
    row = connection.execute(
        """SELECT 1 FROM approvals WHERE job_id = ? AND position = ? AND description = ?
           AND state != 'open'""",
        (asked.job_id, asked.position, asked.description),
    ).fetchone()
    if row is not None:
        _wake(connection, asked.job_id)


def _wake(connection: sqlite3.Connection, job_id: str) -> None:
    connection.execute(
        "UPDATE jobs SET status = ?, resume_at = NULL WHERE id = ? AND status = ?",
        (JobStatus.PENDING, job_id, JobStatus.PAUSED),
    )
