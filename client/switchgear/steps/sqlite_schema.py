"""The SQLite tables, a column for each field of a record, and the statements on them."""

import json
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from switchgear.steps.records import (
    ApprovalRecord,
    ApprovalState,
    EffectRecord,
    EffectState,
    JobRecord,
    JobStatus,
    Row,
    StepRecord,
    StepStatus,
)

R = TypeVar("R", JobRecord, StepRecord, EffectRecord, ApprovalRecord)
Read = Mapping[str, Callable[[Any], Any]]


@dataclass(frozen=True)
class TableSpec:
    """The mapping of a record to a table.

    `key` makes a row unique; the fields in `json` are stored as JSON; `read` converts columns to
    fields.
    """

    name: str
    key: tuple[str, ...]
    json: tuple[str, ...]
    read: Read = field(default_factory=dict)


def _parse_list(text: str) -> tuple[str, ...]:
    return tuple(json.loads(text))


TABLES: Mapping[type, TableSpec] = {
    JobRecord: TableSpec(
        "jobs",
        ("id",),
        ("plan", "input"),
        {"plan": _parse_list, "input": json.loads, "status": JobStatus, "is_compensating": bool},
    ),
    StepRecord: TableSpec(
        "steps",
        ("job_id", "position"),
        ("output", "checkpoint"),
        {
            "output": json.loads,
            "checkpoint": json.loads,
            "status": StepStatus,
            "has_returned": bool,
            "is_reused": bool,
        },
    ),
    EffectRecord: TableSpec(
        "effects",
        ("job_id", "kind", "target", "key", "is_compensation"),
        ("details", "outcome"),
        {
            "details": json.loads,
            "outcome": json.loads,
            "state": EffectState,
            "is_compensation": bool,
        },
    ),
    ApprovalRecord: TableSpec(
        "approvals", ("job_id", "position", "description"), (), {"state": ApprovalState}
    ),
}

SCHEMA = (
    """CREATE TABLE IF NOT EXISTS jobs (
        id TEXT PRIMARY KEY, name TEXT NOT NULL, plan TEXT NOT NULL, input TEXT NOT NULL,
        tenant TEXT NOT NULL, user TEXT NOT NULL, status TEXT NOT NULL,
        is_compensating INTEGER NOT NULL, current INTEGER NOT NULL, reason TEXT, failure TEXT,
        resume_at REAL, epoch INTEGER NOT NULL, worker TEXT, heartbeat REAL,
        created_at REAL NOT NULL, started_at REAL, completed_at REAL)""",
    "CREATE INDEX IF NOT EXISTS jobs_due ON jobs (status, created_at)",
    """CREATE TABLE IF NOT EXISTS steps (
        job_id TEXT NOT NULL REFERENCES jobs ON DELETE CASCADE, position INTEGER NOT NULL,
        name TEXT NOT NULL, key TEXT NOT NULL, status TEXT NOT NULL, attempts INTEGER NOT NULL,
        compensations INTEGER NOT NULL, has_returned INTEGER NOT NULL,
        output TEXT NOT NULL, checkpoint TEXT NOT NULL, error TEXT, is_reused INTEGER NOT NULL,
        started_at REAL, completed_at REAL, UNIQUE (job_id, position))""",
    "CREATE INDEX IF NOT EXISTS steps_key ON steps (key)",
    """CREATE TABLE IF NOT EXISTS effects (
        job_id TEXT NOT NULL REFERENCES jobs ON DELETE CASCADE, position INTEGER NOT NULL,
        kind TEXT NOT NULL, target TEXT NOT NULL, key TEXT NOT NULL, state TEXT NOT NULL,
        details TEXT NOT NULL, outcome TEXT NOT NULL, error TEXT,
        is_compensation INTEGER NOT NULL, at REAL NOT NULL,
        UNIQUE (job_id, kind, target, key, is_compensation))""",
    "CREATE INDEX IF NOT EXISTS effects_key ON effects (key)",
    """CREATE TABLE IF NOT EXISTS approvals (
        job_id TEXT NOT NULL REFERENCES jobs ON DELETE CASCADE, position INTEGER NOT NULL,
        description TEXT NOT NULL, risk TEXT NOT NULL, state TEXT NOT NULL,
        expires_at REAL NOT NULL, by TEXT, decided_at REAL,
        UNIQUE (job_id, position, description))""",
)


def insert(connection: sqlite3.Connection, row: Row, conflict: str) -> int:
    table = TABLES[type(row)]
    values = {each.name: getattr(row, each.name) for each in fields(row)}
    for name in table.json:
        values[name] = json.dumps(values[name])
    if conflict == "DO UPDATE":
        conflict += " SET " + ", ".join(f"{name} = excluded.{name}" for name in values)
        if isinstance(row, ApprovalRecord) and row.state is ApprovalState.OPEN:
            conflict += " WHERE state = 'former'"  # It may be answered by now.
    return connection.execute(
        f"""INSERT INTO {table.name} ({", ".join(values)})
            VALUES ({", ".join(f":{name}" for name in values)})
            ON CONFLICT ({", ".join(table.key)}) {conflict}""",  # noqa: S608 - names of fields.
        values,
    ).rowcount


def select(
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


def update_job(connection: sqlite3.Connection, job: JobRecord) -> None:
    """Write the fields of a job that its worker changes, but heartbeat and epoch."""
    names = (
        *("status", "is_compensating", "current"),
        *("reason", "failure", "resume_at", "completed_at"),
    )
    changes = ", ".join(f"{name} = :{name}" for name in names)
    connection.execute(
        f"UPDATE jobs SET {changes} WHERE id = :id",  # noqa: S608 - names of fields.
        {name: getattr(job, name) for name in (*names, "id")},
    )


def wake_if_answered(connection: sqlite3.Connection, question: ApprovalRecord) -> None:
    """Wake a job whose question was answered between the question and the pause."""
    row = connection.execute(
        """SELECT 1 FROM approvals WHERE job_id = ? AND position = ? AND description = ?
           AND state IN ('given', 'declined')""",
        (question.job_id, question.position, question.description),
    ).fetchone()
    if row is not None:
        wake(connection, question.job_id)


def wake(connection: sqlite3.Connection, job_id: str) -> None:
    connection.execute(
        "UPDATE jobs SET status = ?, resume_at = NULL WHERE id = ? AND status = ?",
        (JobStatus.PENDING, job_id, JobStatus.PAUSED),
    )
