"""How policies, overrides and what is away are read: in one snapshot of the database, and of the
policies those that changed.

What is wrong with a row is no reason to leave out the others: an override has to arrive even where
somebody else's document can't be read.
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
from controlplane.dataplane.memory.head import Head
from controlplane.dataplane.memory.policies import Policy

from .database import BEGIN, HEAD, Connection, head_in

SESSION_OPTIONS = (
    "-c statement_timeout=10s -c lock_timeout=1s -c idle_in_transaction_session_timeout=15s"
)
CAUSES = "SELECT causes::text FROM core_degradation"
AT_ONCE = 200
"""Documents that are rendered before others have their turn: some 5 ms."""

log = structlog.get_logger(__name__)


class Changes(NamedTuple):
    """What was found: the policies that changed since the version asked for, but for those that
    are `broken` (caller and callee); `causes` is None if nothing that is said there can be read."""

    head: Head
    policies: list[Policy]
    broken: list[tuple[str, str]]
    causes: tuple[Cause, ...] | None


async def read(connection: Connection, since: int) -> Changes:
    """Everything that changed since a version, in one round trip; -1 for all there is."""
    wanted = [BEGIN, HEAD, CAUSES, _changed_since(since), "COMMIT"]
    cursor = await connection.execute("; ".join(wanted))
    cursor.nextset()
    head = await head_in(cursor)
    cursor.nextset()
    away = _causes(await cursor.fetchall())
    cursor.nextset()
    return Changes(head, *await _policies(cursor), away)


def _changed_since(version: int) -> str:
    """The statement; a plain text, because it is sent together with others. What is known by
    reports alone has version 0, and nobody is told of it."""
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
    # Nobody has registered it, and no override is set any more: nothing is to be told.
    if removed or (not policy and override is None):
        return Policy(caller, callee, version, b"")
    told = {**policy, "override": override}
    breaker = policy.get("breaker")
    if isinstance(breaker, dict) and breaker.get("half_open_max_seconds") == 0:
        # Clients before 0.4 refuse 0, now the default, and with it the whole breaker section.
        told["breaker"] = {k: v for k, v in breaker.items() if k != "half_open_max_seconds"}
    return Policy(caller, callee, version, orjson.dumps(told, option=orjson.OPT_SORT_KEYS))


def _causes(rows: list[tuple[Any, ...]]) -> tuple[Cause, ...] | None:
    try:
        return tuple(causes.cause(each) for each in orjson.loads(rows[0][0])) if rows else ()
    except (TypeError, ValueError) as error:
        log.error("dataplane.causes_left_out", error=str(error))
        return None
