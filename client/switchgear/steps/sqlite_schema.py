"""The tables of :mod:`~switchgear.steps.sqlite_store`: a column for each field of a record."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from switchgear.steps.records import (
    ApprovalRecord,
    ApprovalState,
    EffectRecord,
    EffectState,
    JobRecord,
    JobStatus,
    StepRecord,
    StepStatus,
)

Read = Mapping[str, Callable[[Any], Any]]


@dataclass(frozen=True)
class Table:
    """`key` makes a row unique; the fields in `json` are kept as such; `read` makes of a column
    what its field is."""

    name: str
    key: tuple[str, ...]
    json: tuple[str, ...]
    read: Read = field(default_factory=dict)


def _list(text: str) -> tuple[str, ...]:
    return tuple(json.loads(text))


TABLES: Mapping[type, Table] = {
    JobRecord: Table(
        "jobs",
        ("id",),
        ("plan", "input"),
        {"plan": _list, "input": json.loads, "status": JobStatus, "is_compensating": bool},
    ),
    StepRecord: Table(
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
    EffectRecord: Table(
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
    ApprovalRecord: Table(
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
