"""Queries for policies, overrides and degradation causes.

An invalid row is skipped, so that it doesn't delay overrides of other dependencies.
"""

import asyncio
from typing import Any, NamedTuple

import orjson
import structlog
from psycopg import AsyncCursor

from controlplane.core.canonical import timestamp
from controlplane.core.degradation_levels import Cause
from controlplane.dataplane.memory.policies import DependencyPolicy, parse_cause
from controlplane.dataplane.postgres.database import DatabaseHead

from .database import BEGIN, HEAD, Connection, parse_head

SESSION_OPTIONS = (
    "-c statement_timeout=10s -c lock_timeout=1s -c idle_in_transaction_session_timeout=15s"
)
CAUSES = "SELECT causes::text FROM core_degradation"
# Dependencies known from reports alone have version 0 and are not published.
CHANGED_SINCE = """
    SELECT d.caller, d.callee, d.version, d.removed_at IS NOT NULL, d.document::text,
           o.mode, o.reason, o.expires_at, o.version
    FROM breakers_dependency d
    LEFT JOIN breakers_override o ON o.dependency_id = d.id AND o.ended_at IS NULL
    WHERE d.version > {}
"""
AT_ONCE = 200
"""Documents rendered before other tasks run: about 5 ms."""

log = structlog.get_logger(__name__)


class Changes(NamedTuple):
    """The policies that changed since a version, and all degradation causes.

    `broken` lists (caller, callee) of invalid policies, which are left out; `causes` is None if the
    causes are invalid.
    """

    head: DatabaseHead
    policies: list[DependencyPolicy]
    broken: list[tuple[str, str]]
    causes: tuple[Cause, ...] | None


async def read_changes(connection: Connection, since: int) -> Changes:
    """Return all changes after version `since`, or all policies for -1, in one round trip."""
    # The version is inlined, because statements that are sent together can't have parameters.
    changed = CHANGED_SINCE.format(max(0, since))
    statements = [BEGIN, HEAD, CAUSES, changed, "COMMIT"]
    cursor = await connection.execute("; ".join(statements))
    cursor.nextset()
    head = await parse_head(cursor)
    cursor.nextset()
    documents = await cursor.fetchall()
    causes: tuple[Cause, ...] | None = ()
    try:
        if documents:
            causes = tuple(parse_cause(each) for each in orjson.loads(documents[0][0]))
    except (TypeError, ValueError) as error:
        log.error("dataplane.causes_unreadable", error=str(error))
        causes = None
    cursor.nextset()
    return Changes(head, *await _fetch_policies(cursor), causes)


async def _fetch_policies(
    cursor: AsyncCursor[tuple[Any, ...]],
) -> tuple[list[DependencyPolicy], list[tuple[str, str]]]:
    policies: list[DependencyPolicy] = []
    broken: list[tuple[str, str]] = []
    while some := await cursor.fetchmany(AT_ONCE):
        for row in some:
            try:
                policies.append(_make_policy(row))
            except (TypeError, ValueError) as error:
                broken.append(row[:2])
                log.error(
                    "dataplane.policy_left_out", caller=row[0], callee=row[1], error=str(error)
                )
        await asyncio.sleep(0)
    return policies, broken


def _make_policy(row: tuple[Any, ...]) -> DependencyPolicy:
    caller, callee, version, removed, document, mode, reason, expires_at, override_version = row
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
        raise TypeError("the document is not an object")
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
