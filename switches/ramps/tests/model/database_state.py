"""Queries for the state of the product's database, in few statements."""

import json
from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from django.db import connection

from controlplane.dataplane.postgres.database import ENTRIES
from switches import snapshot

RAMPS = """
    SELECT r.switch_id, j.id, j.state, j.step_index, j.fence, j.next_at, r.live, r.blind_since,
           array_agg(s.state ORDER BY s.index), array_agg(s.due_at ORDER BY s.index)
    FROM switches_ramp r JOIN core_job j ON j.id = r.job_id JOIN core_jobstep s ON s.job_id = j.id
    GROUP BY r.job_id, j.id ORDER BY j.id
"""
EFFECTS = "SELECT job_id, step_index, name, key, done_at FROM core_jobeffect ORDER BY id"
EPISODES = """
    SELECT switch_id, overdue_at IS NOT NULL FROM switches_episode WHERE ended_at IS NULL
"""
APPROVALS = """
    SELECT id, kind, target, state, expires_at FROM core_approval ORDER BY id
"""
AUDIT = """
    SELECT id, action, target, actor_type || ':' || actor_name, before, after FROM core_auditentry
    WHERE id > %s ORDER BY id
"""
MESSAGES = """
    SELECT a.id, m.destination FROM core_auditentry a JOIN core_outboxmessage m ON m.event_key IN (
        'audit:' || a.id,
        CASE a.action
            WHEN 'approval.requested' THEN 'approval:' || (a.after::jsonb->>'approval') || ':first'
            WHEN 'review.opened' THEN 'review:' || (a.after::jsonb->>'approval') || ':first'
        END
    ) WHERE a.id > %s
"""
HEAD = "SELECT epoch, version, published_at FROM switches_publication"
FENCES = "SELECT id, fence FROM core_job"
WHOLE_JOBS = """
    SELECT j.id, to_jsonb(j) - 'duplicates_stopped', jsonb_agg(to_jsonb(s) ORDER BY s.index)
    FROM core_job j JOIN core_jobstep s ON s.job_id = j.id WHERE j.id = ANY(%s) GROUP BY j.id
"""


class RampRow(NamedTuple):
    switch: str
    pk: int
    state: str
    index: int
    fence: int
    next_at: datetime | None
    live: bool
    blind_since: datetime | None
    steps: list[str]
    ends: list[datetime | None]


class ApprovalRow(NamedTuple):
    pk: int
    kind: str
    target: str
    state: str
    expires_at: datetime | None


class AuditRow(NamedTuple):
    id: int
    action: str
    target: str
    actor: str
    before: Any
    after: Any


@dataclass(frozen=True)
class Shown:
    """The database state that is compared with the model.

    `switches` are the snapshot's entries by id; `ramps` are by switch, oldest first; `effects`
    (step and name) are by job. `audit` has the rows since the last comparison, and `told` the
    number of messages by audit id.
    """

    version: int
    switches: dict[str, dict[str, Any]]
    overdue: dict[str, bool]
    ramps: dict[str, list[RampRow]]
    effects: dict[int, list[tuple[int, str]]]
    approvals: list[ApprovalRow]
    audit: list[AuditRow]
    told: Counter[int]


def everything(after: int) -> Shown:
    """Return the whole state in one round trip, with the audit rows after the id `after`."""
    head, entries, episodes, ramps, effects, approvals, audit, messages = _answers(
        [HEAD, ENTRIES, EPISODES, RAMPS, EFFECTS, APPROVALS, AUDIT, MESSAGES], [after, after]
    )
    rendered = snapshot.render(
        snapshot.SnapshotVersion(*head[0]), [snapshot.SnapshotEntry(*row) for row in entries]
    )
    document = json.loads(rendered)
    by_switch: dict[str, list[RampRow]] = defaultdict(list)
    for row in map(RampRow._make, ramps):
        by_switch[row.switch].append(row)
    return Shown(
        version=document["version"],
        switches={entry["id"]: entry for entry in document["switches"]},
        overdue=dict(episodes),
        ramps=by_switch,
        effects=_by_job(effects),
        approvals=[ApprovalRow(*row) for row in approvals],
        audit=_parsed(audit),
        told=Counter(row for row, _ in messages),
    )


def done_since(after: int) -> tuple[list[AuditRow], dict[int, RampRow]]:
    """Return the audit rows after the id `after`, and every ramp by its id."""
    audit, ramps = _answers([AUDIT, RAMPS], [after])
    return _parsed(audit), {row.pk: row for row in map(RampRow._make, ramps)}


def audit(after: int) -> list[AuditRow]:
    """Return the audit rows after the id `after`."""
    return _parsed(_answers([AUDIT], [after])[0])


def fences() -> dict[int, int]:
    """Return the number of claims of each job."""
    return dict(_answers([FENCES], [])[0])


def whole_jobs(pks: list[int]) -> list[Any]:
    """Return all columns of these jobs and their steps, except the count of stopped writes."""
    return sorted(_answers([WHOLE_JOBS], [pks])[0]) if pks else []


def _by_job(effects: list[Any]) -> dict[int, list[tuple[int, str]]]:
    """Return the side effects by job; assert that each is done and has a unique key."""
    found, keys = defaultdict(list), set()
    for job, index, name, key, done_at in effects:
        assert done_at is not None
        assert key not in keys
        keys.add(key)
        found[job].append((index, name))
    return found


def _parsed(rows: list[Any]) -> list[AuditRow]:
    found = map(AuditRow._make, rows)
    return [
        row._replace(before=json.loads(row.before), after=json.loads(row.after)) for row in found
    ]


def _answers(texts: list[str], values: list[Any]) -> list[list[Any]]:
    """Return the rows of each statement; all statements are sent together."""
    with connection.cursor() as cursor:
        cursor.execute(";".join(texts), values)
        found = [cursor.fetchall()]
        while cursor.nextset():
            found.append(cursor.fetchall())
    return found
