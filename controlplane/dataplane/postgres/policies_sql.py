"""Queries for changed policies, overrides and degradation causes, in one database snapshot.

An invalid row doesn't affect the others: an override must arrive even if another dependency's
document can't be read.
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
from controlplane.dataplane.memory.head import DatabaseHead
from controlplane.dataplane.memory.policies import Policy

from .database import BEGIN, HEAD, Connection, parse_head

SESSION_OPTIONS = (
    "-c statement_timeout=10s -c lock_timeout=1s -c idle_in_transaction_session_timeout=15s"
)
CAUSES = "SELECT causes::text FROM core_degradation"
AT_ONCE = 200
"""Documents rendered before other tasks run: about 5 ms."""

log = structlog.get_logger(__name__)


class Changes(NamedTuple):
    """Policies changed since the requested version, without the `broken` ones.

    `broken` lists caller and callee; `causes` is None if they can't be read.
    """

    head: DatabaseHead
    policies: list[Policy]
    broken: list[tuple[str, str]]
    causes: tuple[Cause, ...] | None


async def read(connection: Connection, since: int) -> Changes:
    """Return everything that changed since a version, in one round trip; -1 reads all."""
    wanted = [BEGIN, HEAD, CAUSES, _changed_since(since), "COMMIT"]
    cursor = await connection.execute("; ".join(wanted))
    cursor.nextset()
    head = await parse_head(cursor)
    cursor.nextset()
    away = _causes(await cursor.fetchall())
    cursor.nextset()
    return Changes(head, *await _policies(cursor), away)


def _changed_since(version: int) -> str:
    """Return the query as plain text, because it is sent together with others.

    Dependencies known from reports alone have version 0 and are not published.
    """
    return f"""
        SELECT d.caller, d.callee, d.version, d.removed_at IS NOT NULL, d.document::text,
               o.mode, o.reason, o.expires_at, o.version
        FROM breakers_dependency d
        LEFT JOIN breakers_override o ON o.dependency_id = d.id AND o.ended_at IS NULL
        WHERE d.version > {max(0, version)}
    """  # noqa: S608


async def _policies(
    cursor: AsyncCursor[tuple[Any, ...]],
) -> tuple[list[Policy], list[tuple[str, str]]]:
    found: list[Policy] = []
    broken: list[tuple[str, str]] = []
    while some := await cursor.fetchmany(AT_ONCE):
        for row in some:
            try:
                found.append(_policy(*row))
            except (TypeError, ValueError) as error:
                broken.append(row[:2])
                log.error(
                    "dataplane.policy_left_out", caller=row[0], callee=row[1], error=str(error)
                )
        await asyncio.sleep(0)
    return found, broken


def _policy(
    caller: str,
    callee: str,
    version: int,
    removed: bool,
    document: str,
    mode: str | None,
    reason: str | None,
    expires_at: datetime | None,
    override_version: int | None,
) -> Policy:
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
        return Policy(caller, callee, version, b"")
    told = {**policy, "override": override}
    breaker = policy.get("breaker")
    if isinstance(breaker, dict) and breaker.get("half_open_max_seconds") == 0:
        # Clients before 0.4 reject 0, now the default, and the whole breaker section with it.
        told["breaker"] = {k: v for k, v in breaker.items() if k != "half_open_max_seconds"}
    return Policy(caller, callee, version, orjson.dumps(told, option=orjson.OPT_SORT_KEYS))


def _causes(rows: list[tuple[Any, ...]]) -> tuple[Cause, ...] | None:
    try:
        return tuple(causes.cause(each) for each in orjson.loads(rows[0][0])) if rows else ()
    except (TypeError, ValueError) as error:
        log.error("dataplane.causes_left_out", error=str(error))
        return None
