"""How policies and overrides are read from the registry: those that changed, and no others."""

import asyncio
from datetime import datetime
from typing import Any

import orjson
from psycopg import AsyncCursor

from controlplane.core.canonical import timestamp
from controlplane.dataplane.policies import Policy

AT_ONCE = 200
"""Documents that are rendered before others have their turn: some 5 ms."""


def changed_since(version: int) -> str:
    """The statement; a plain text, because it is sent together with others. What is known by
    reports alone has version 0, and nobody is told of it."""
    return f"""
        SELECT d.caller, d.callee, d.version, d.removed_at IS NOT NULL, d.document::text,
               o.mode, o.reason, o.expires_at, o.version
        FROM breakers_dependency d
        LEFT JOIN breakers_override o ON o.dependency_id = d.id AND o.ended_at IS NULL
        WHERE d.version > {max(0, version)}
    """  # noqa: S608


async def read(cursor: AsyncCursor[tuple[Any, ...]]) -> list[Policy]:
    """The rows of :func:`changed_since`."""
    result: list[Policy] = []
    while some := await cursor.fetchmany(AT_ONCE):
        result += [_policy(*row) for row in some]
        await asyncio.sleep(0)
    return result


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
    told = {**orjson.loads(document), "override": override}
    text = b"" if removed else orjson.dumps(told, option=orjson.OPT_SORT_KEYS)
    return Policy(caller, callee, version, text)
