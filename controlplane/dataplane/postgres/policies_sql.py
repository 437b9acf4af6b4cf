"""Queries for policies, overrides and degradation causes.

An invalid row is skipped, so that it doesn't delay overrides of other dependencies.
"""

import asyncio
from datetime import datetime
from typing import Any, NamedTuple

import orjson
import structlog
from psycopg import AsyncCursor

from controlplane.core.canonical import timestamp
from controlplane.core.degradation_levels import Cause
from controlplane.dataplane.memory import degradation_causes as causes
from controlplane.dataplane.memory.policies import DependencyPolicy
from controlplane.dataplane.postgres.database import DatabaseHead

from .database import BEGIN, HEAD, Connection, parse_head

SESSION_OPTIONS = (
    "-c statement_timeout=10s -c lock_timeout=1s -c idle_in_transaction_session_timeout=15s"
)
CAUSES = "SELECT causes::text FROM core_degradation"
AT_ONCE = 200
"""Documents rendered before other tasks run: about 5 ms."""

log = structlog.get_logger(__name__)


class Changes(NamedTuple):
    """Policies that changed since a version, without invalid ones.

    `broken` lists (caller, callee) of invalid policies; `causes` is None if they are invalid.
    """

    head: DatabaseHead
    policies: list[DependencyPolicy]
    broken: list[tuple[str, str]]
    causes: tuple[Cause, ...] | None


async def read_changes(connection: Connection, since: int) -> Changes:
    """Return everything that changed after version `since`, in one round trip; -1 for all."""
    statements = [BEGIN, HEAD, CAUSES, _changed_since(since), "COMMIT"]
    cursor = await connection.execute("; ".join(statements))
    cursor.nextset()
    head = await parse_head(cursor)
    cursor.nextset()
    causes_now = _parse_causes(await cursor.fetchall())
    cursor.nextset()
    return Changes(head, *await _fetch_policies(cursor), causes_now)


def _changed_since(version: int) -> str:
    """Return the query with `version` inlined, because it is sent together with other queries.

    Dependencies known from reports alone have version 0 and are not published.
    """
    return f"""
        SELECT d.caller, d.callee, d.version, d.removed_at IS NOT NULL, d.document::text,
               o.mode, o.reason, o.expires_at, o.version
        FROM breakers_dependency d
        LEFT JOIN breakers_override o ON o.dependency_id = d.id AND o.ended_at IS NULL
        WHERE d.version > {max(0, version)}
    """  # noqa: S608


async def _fetch_policies(
    cursor: AsyncCursor[tuple[Any, ...]],
) -> tuple[list[DependencyPolicy], list[tuple[str, str]]]:
    policies: list[DependencyPolicy] = []
    broken: list[tuple[str, str]] = []
    while some := await cursor.fetchmany(AT_ONCE):
        for row in some:
            try:
                policies.append(_make_policy(*row))
            except (TypeError, ValueError) as error:
                broken.append(row[:2])
                log.error(
                    "dataplane.policy_left_out", caller=row[0], callee=row[1], error=str(error)
                )
        await asyncio.sleep(0)
    return policies, broken


def _make_policy(
    caller: str,
    callee: str,
    version: int,
    removed: bool,
    document: str,
    mode: str | None,
    reason: str | None,
    expires_at: datetime | None,
    override_version: int | None,
) -> DependencyPolicy:
    override = None
    if mode is not None and expires_at is not None:
        override = {
            "mode": mode,
            "reason": reason,
            "expires_at": timestamp(expires_at),
            "version": override_version,
        }
    policy = orjson.loads(document)
    if not isinstance(policy, dict):
        raise TypeError("the document is no object")
    # Removed, or known from reports alone without an override: nothing to send.
    if removed or (not policy and override is None):
        return DependencyPolicy(caller, callee, version, b"")
    published = {**policy, "override": override}
    breaker = policy.get("breaker")
    if isinstance(breaker, dict) and breaker.get("half_open_max_seconds") == 0:
        # Clients before 0.4 reject 0, now the default, and the whole breaker section with it.
        published["breaker"] = {k: v for k, v in breaker.items() if k != "half_open_max_seconds"}
    return DependencyPolicy(
        caller, callee, version, orjson.dumps(published, option=orjson.OPT_SORT_KEYS)
    )


def _parse_causes(rows: list[tuple[Any, ...]]) -> tuple[Cause, ...] | None:
    try:
        return tuple(causes.parse_cause(each) for each in orjson.loads(rows[0][0])) if rows else ()
    except (TypeError, ValueError) as error:
        log.error("dataplane.causes_left_out", error=str(error))
        return None
