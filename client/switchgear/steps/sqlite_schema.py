"""The SQLite tables of jobs, with a column for each field of a record, and statements on them."""

import json
import sqlite3
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, TypeVar, get_type_hints

from switchgear.steps.records import (
    ApprovalRecord,
    ApprovalState,
    EffectRecord,
    JobRecord,
    JobStatus,
    Row,
    StepRecord,
)

R = TypeVar("R", JobRecord, StepRecord, EffectRecord, ApprovalRecord)


TABLES: Mapping[type, tuple[str, tuple[str, ...]]] = {
    JobRecord: ("jobs", ("id",)),
    StepRecord: ("steps", ("job_id", "position")),
    EffectRecord: ("effects", ("job_id", "kind", "target", "key", "is_compensation")),
    ApprovalRecord: ("approvals", ("job_id", "position", "description")),
}
"""For each record class: its table, and the columns that identify a row."""

_FIELD_TYPES = {kind: get_type_hints(kind) for kind in TABLES}
_JSON_TYPES = (Any, tuple[str, ...])
"""Types of fields that are stored as JSON."""


def _to_field(value: Any, hint: Any) -> Any:
    if hint in _JSON_TYPES:
        value = json.loads(value)
        return value if hint is Any else tuple(value)
    is_converted = hint is bool or (isinstance(hint, type) and issubclass(hint, StrEnum))
    return hint(value) if is_converted else value


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


def insert_row(connection: sqlite3.Connection, row: Row, conflict: str) -> int:
    table, key = TABLES[type(row)]
    values = {
        name: json.dumps(getattr(row, name)) if hint in _JSON_TYPES else getattr(row, name)
        for name, hint in _FIELD_TYPES[type(row)].items()
    }
    if conflict == "DO UPDATE":
        conflict += " SET " + ", ".join(f"{name} = excluded.{name}" for name in values)
        if isinstance(row, ApprovalRecord) and row.state is ApprovalState.OPEN:
            conflict += " WHERE state = 'former'"  # It may be answered by now.
    return connection.execute(
        f"""INSERT INTO {table} ({", ".join(values)})
            VALUES ({", ".join(f":{name}" for name in values)})
            ON CONFLICT ({", ".join(key)}) {conflict}""",  # noqa: S608 - names of fields.
        values,
    ).rowcount


def select_rows(
    connection: sqlite3.Connection, kind: type[R], condition: str, given: Mapping[str, object]
) -> list[R]:
    columns = _FIELD_TYPES[kind]
    rows = connection.execute(
        f"SELECT {', '.join(columns)} FROM {TABLES[kind][0]} WHERE {condition}",  # noqa: S608
        given,
    )
    return [
        kind(
            **{
                name: _to_field(value, hint)
                for (name, hint), value in zip(columns.items(), row, strict=True)
            }
        )
        for row in rows
    ]


def update_job(connection: sqlite3.Connection, job: JobRecord) -> None:
    """Write the fields of a job that its worker may change, all but heartbeat and epoch."""
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
    """Make a paused job pending if its approval request was decided before the pause was stored."""
    row = connection.execute(
        """SELECT 1 FROM approvals WHERE job_id = ? AND position = ? AND description = ?
           AND state IN ('given', 'declined')""",
        (question.job_id, question.position, question.description),
    ).fetchone()
    if row is not None:
        wake_job(connection, question.job_id)


def wake_job(connection: sqlite3.Connection, job_id: str) -> None:
    connection.execute(
        "UPDATE jobs SET status = ?, resume_at = NULL WHERE id = ? AND status = ?",
        (JobStatus.PENDING, job_id, JobStatus.PAUSED),
    )
