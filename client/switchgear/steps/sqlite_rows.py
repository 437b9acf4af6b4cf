"""Records as rows of :mod:`~switchgear.steps.sqlite_store`, within a transaction of its."""

import json
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, TypeVar

from switchgear.steps.records import (
    ApprovalRecord,
    ApprovalState,
    EffectRecord,
    JobRecord,
    JobStatus,
    Row,
    StepRecord,
)
from switchgear.steps.sqlite_schema import TABLES

R = TypeVar("R", JobRecord, StepRecord, EffectRecord, ApprovalRecord)


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
    """What its worker knows of it; signs of life and epochs are not among that."""
    names = (
        *("status", "is_compensating", "current"),
        *("reason", "failure", "resume_at", "completed_at"),
    )
    changes = ", ".join(f"{name} = :{name}" for name in names)
    connection.execute(
        f"UPDATE jobs SET {changes} WHERE id = :id",  # noqa: S608 - names of fields.
        {name: getattr(job, name) for name in (*names, "id")},
    )


def wake_if_answered(connection: sqlite3.Connection, asked: ApprovalRecord) -> None:
    """An answer may come between the question and the pause."""
    row = connection.execute(
        """SELECT 1 FROM approvals WHERE job_id = ? AND position = ? AND description = ?
           AND state IN ('given', 'declined')""",
        (asked.job_id, asked.position, asked.description),
    ).fetchone()
    if row is not None:
        wake(connection, asked.job_id)


def wake(connection: sqlite3.Connection, job_id: str) -> None:
    connection.execute(
        "UPDATE jobs SET status = ?, resume_at = NULL WHERE id = ? AND status = ?",
        (JobStatus.PENDING, job_id, JobStatus.PAUSED),
    )
