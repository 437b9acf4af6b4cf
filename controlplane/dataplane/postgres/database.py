"""The data plane's connection to PostgreSQL, and its queries for switches and tokens."""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

import orjson
from psycopg import AsyncConnection, AsyncCursor, sql

from controlplane.core.degradation_levels import READ_ONLY_SQL
from controlplane.core.roles import SCOPES_OF, Role
from controlplane.dataplane.config import Config
from controlplane.dataplane.memory.callers import TokenUse
from controlplane.dataplane.memory.credentials import (
    CodeHash,
    CodeTable,
    Credential,
    TokenTable,
)
from controlplane.dataplane.memory.order_set import ClosedOrder, ClosedOrders
from controlplane.dataplane.memory.ownership import OwnershipTable, build_table
from controlplane.dataplane.memory.served_copy import DrillSnapshot
from switches.drills.patterns import Marks
from switches.snapshot import SnapshotEntry, SnapshotVersion, drill_reason

Connection = AsyncConnection[tuple[Any, ...]]

SESSION_OPTIONS = (
    "-c statement_timeout=2s -c lock_timeout=1s -c idle_in_transaction_session_timeout=5s"
)
BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
# Subqueries, so that switches and tokens are followed even without the other two rows.
HEAD = f"""
    SELECT p.epoch, p.version, p.published_at, c.revision, p.registrations, clock_timestamp(),
           coalesce((SELECT version FROM breakers_registry), 0),
           (SELECT changed_at FROM breakers_registry),
           coalesce((SELECT revision FROM core_degradation), 0),
           {READ_ONLY_SQL}
    FROM switches_publication p, core_credentials c
"""  # noqa: S608 - a constant
ENTRIES = """
    SELECT s.id, s.scope, s.key, e.allow_percent, e.salt, e.reason,
           e.engaged_at, e.expires_at, e.on_expiry
    FROM switches_episode e JOIN switches_switch s ON s.id = e.switch_id
    WHERE e.ended_at IS NULL
"""
DRILLED = """
    SELECT s.id, s.scope, s.key, d.salt, j.reason, d.engaged_at, d.ends_by,
           (SELECT coalesce(array_agg(pattern), '{}') FROM switches_drillmark)
    FROM switches_drill d JOIN switches_switch s ON s.id = d.switch_id
    JOIN core_job j ON j.id = d.job_id
    WHERE d.live AND d.engaged_at IS NOT NULL AND d.released_at IS NULL
      AND d.ends_by > clock_timestamp()
"""
TOKENS = """
    SELECT t.prefix, t.id, t.name, t.digest, t.scopes, t.expires_at, t.owner_id,
           CASE WHEN t.team_id IS NULL THEN u.role ELSE 'operator' END,
           t.services, coalesce(team.slug, ''), t.patterns, t.only_owned,
           CASE WHEN t.team_id IS NULL THEN ARRAY(
               SELECT own.slug FROM core_membership m JOIN core_team own ON own.id = m.team_id
               WHERE m.user_id = t.owner_id) ELSE ARRAY[team.slug] END
    FROM core_token t JOIN core_user u ON u.id = t.owner_id
    LEFT JOIN core_team team ON team.id = t.team_id
    WHERE t.revoked_at IS NULL AND (u.is_active OR t.team_id IS NOT NULL)
"""
OWNED = """
    SELECT o.pattern, t.slug FROM core_ownership o JOIN core_team t ON t.id = o.team_id
"""
PARENTS = """
    SELECT t.slug, p.slug FROM core_team t JOIN core_team p ON p.id = t.parent_id
"""
CODES = """
    SELECT u.username, u.role, u.id, c.salt, c.digest
    FROM core_emergencycode c JOIN core_user u ON u.id = c.user_id
    WHERE c.revoked_at IS NULL AND u.is_active
"""
CLOSED_ORDERS = """
    SELECT id, closed_at, coalesce(order_id::text, switch) FROM switches_emergencyorder
    WHERE closed_at > clock_timestamp() - interval '30 days'
       OR (closed_at IS NOT NULL AND id = ANY({known}))
"""
"""Closed emergency orders: the recent ones, and those in the array `known`."""
HAS_LOST = """
    SELECT EXISTS (
        SELECT FROM switches_publishedversion WHERE epoch = {epoch} AND version <= {version})
    AND NOT EXISTS (
        SELECT FROM switches_publishedversion
        WHERE epoch = {epoch} AND version = {version} AND published_at = {published_at})
    AND NOT EXISTS (
        SELECT FROM switches_lostversion
        WHERE epoch = {epoch} AND version = {version} AND published_at = {published_at}
          AND closed_at IS NOT NULL)
"""
"""True if the database had this version's epoch, but not the version, and nobody knows it yet.

It is False for another installation's epoch, and for versions that are older than its records.
"""
SWITCH_IDS = "SELECT id FROM switches_switch"
RECORD_USE_SQL = """
    UPDATE core_token SET last_used_at = clock_timestamp()
    WHERE id = ANY(%s)
      AND (last_used_at IS NULL OR last_used_at < clock_timestamp() - make_interval(secs => %s))
"""

RECORD_CALLERS_SQL = """
    INSERT INTO core_tokencaller AS known (token_id, service, used_at, refused_at)
    SELECT t.id, given.service,
           CASE WHEN given.used THEN clock_timestamp() END,
           CASE WHEN given.refused THEN clock_timestamp() END
    FROM jsonb_to_recordset(%s::jsonb) AS given (
        token_id bigint, service text, used boolean, refused boolean)
    JOIN core_token t ON t.id = given.token_id
    WHERE %s > (SELECT count(*) FROM core_tokencaller c WHERE c.token_id = t.id)
       OR EXISTS (SELECT FROM core_tokencaller c
                  WHERE c.token_id = t.id AND c.service = given.service)
    ORDER BY t.id, given.service
    ON CONFLICT (token_id, service) DO UPDATE
    SET used_at = coalesce(excluded.used_at, known.used_at),
        refused_at = coalesce(excluded.refused_at, known.refused_at)
"""
MAX_SERVICES_PER_TOKEN = 200


class DatabaseHead(NamedTuple):
    """Versions of everything that the data plane follows, in one row.

    `revision` is the revision of the credentials, and `registrations` the number of switches ever
    registered. `now` is the database's time. `policies` is the version of policies and overrides,
    set at `policies_at` (None before the first); `degradation` is the revision of the degradation
    causes. `is_read_only` is True while PostgreSQL refuses writes.
    """

    publication: SnapshotVersion
    revision: int
    registrations: int
    now: datetime
    policies: int = 0
    policies_at: datetime | None = None
    degradation: int = 0
    is_read_only: bool = False


class Contents(NamedTuple):
    """The database's content at one moment; parts that were not requested are None."""

    head: DatabaseHead
    entries: list[SnapshotEntry] | None
    drill_snapshot: DrillSnapshot | None
    closed: ClosedOrders | None
    tokens: TokenTable | None
    codes: CodeTable | None
    owners: OwnershipTable | None
    known: frozenset[str] | None
    has_lost: bool = False
    """True if the database has lost the version that the data plane serves."""


async def connect(config: Config, options: str = SESSION_OPTIONS) -> Connection:
    """Return a new connection with the runtime role, outside any pool."""
    connection = await AsyncConnection.connect(
        config.database_url,
        autocommit=True,
        connect_timeout=3,
        application_name="switchgear-dataplane",
        options=options,
        prepare_threshold=None,  # A transaction pooler may stand in between.
    )
    try:
        if config.assume_role:
            role = sql.Identifier(config.assume_role)
            await connection.execute(sql.SQL("SET ROLE {}").format(role))
    except BaseException:
        connection.pgconn.finish()
        raise
    return connection


async def read_contents(
    connection: Connection,
    *,
    entries: bool,
    tokens: bool,
    known: bool,
    orders: Iterable[UUID] = (),
    served: SnapshotVersion | None = None,
) -> Contents:
    """Return the database head and the requested contents, in one transaction and round trip.

    `entries` are all switches that are not released, with the running drills and the closed
    emergency orders, among them those of the known `orders` that are closed; `tokens` the usable
    tokens, emergency codes and owners of resources; `known` the ids of all switches. `served` is
    the version that the data plane serves.
    """
    ids = sql.Literal(list(orders)).as_string(connection)
    choices = (
        (ENTRIES, entries),
        (DRILLED, entries),
        (CLOSED_ORDERS.format(known=f"{ids}::uuid[]"), entries),
        (TOKENS, tokens),
        (CODES, tokens),
        (OWNED, tokens),
        (PARENTS, tokens),
        (SWITCH_IDS, known),
        (has_lost_sql(connection, served) if served else "", served is not None),
    )
    requested = [text for text, on in choices if on]
    cursor = await connection.execute("; ".join([BEGIN, HEAD, *requested, "COMMIT"]))
    cursor.nextset()
    head = await parse_head(cursor)

    async def next_rows() -> list[tuple[Any, ...]]:
        cursor.nextset()
        return await cursor.fetchall()

    return Contents(
        head,
        [SnapshotEntry(*row) for row in await next_rows()] if entries else None,
        _drill_snapshot(await next_rows()) if entries else None,
        _closed_orders(await next_rows()) if entries else None,
        _tokens(await next_rows()) if tokens else None,
        _codes(await next_rows()) if tokens else None,
        build_table(dict(await next_rows()), dict(await next_rows())) if tokens else None,
        frozenset(row[0] for row in await next_rows()) if known else None,
        served is not None and (await next_rows()) == [(True,)],
    )


def has_lost_sql(connection: Connection, served: SnapshotVersion) -> str:
    """Return the query :data:`HAS_LOST` about a version."""
    values = (served.epoch, served.version, served.published_at)
    epoch, version, published_at = (sql.Literal(it).as_string(connection) for it in values)
    return HAS_LOST.format(epoch=epoch, version=version, published_at=published_at)


async def record_token_use(config: Config, token_ids: Iterable[int]) -> None:
    """Set `last_used_at` of tokens to now if it is older than half of `usage_seconds`."""
    connection = await connect(config)
    try:
        await connection.execute(RECORD_USE_SQL, (list(token_ids), config.usage_seconds / 2))
    finally:
        connection.pgconn.finish()


async def record_callers(config: Config, uses: Mapping[TokenUse, Collection[bool]]) -> None:
    """Note in whose names tokens were used or refused: by use, whether it was refused."""
    rows = [
        {**use._asdict(), "used": False in outcomes, "refused": True in outcomes}
        for use, outcomes in uses.items()
    ]
    connection = await connect(config)
    try:
        values = (orjson.dumps(rows).decode(), MAX_SERVICES_PER_TOKEN)
        await connection.execute(RECORD_CALLERS_SQL, values)
    finally:
        connection.pgconn.finish()


async def parse_head(cursor: AsyncCursor[tuple[Any, ...]]) -> DatabaseHead:
    """Return the head from the result of the query `HEAD`; raise LookupError if not migrated."""
    row = await cursor.fetchone()
    if row is None:
        raise LookupError("the publication row is missing; run the migrations")
    epoch, version, published_at, *others = row
    return DatabaseHead(SnapshotVersion(epoch, version, published_at), *others)


def _tokens(rows: list[tuple[Any, ...]]) -> TokenTable:
    return {row[0].encode(): _credential(*row[1:]) for row in rows}


def _credential(
    token_id: int,
    name: str,
    digest: str,
    scopes: list[str],
    expires_at: datetime | None,
    owner_id: int,
    role: str,
    services: list[str],
    team: str,
    patterns: list[str],
    only_owned: bool,
    teams: list[str],
) -> Credential:
    return Credential(
        token_id=token_id,
        name=name,
        digest=bytes.fromhex(digest),
        scopes=frozenset(scopes) & SCOPES_OF[Role(role)],
        expires_at=None if expires_at is None else expires_at.timestamp(),
        owner_id=owner_id,
        role=role,
        services=frozenset(services),
        team=team,
        teams=frozenset(teams),
        patterns=frozenset(patterns),
        only_owned=only_owned,
    )


def _closed_orders(rows: list[tuple[Any, ...]]) -> ClosedOrders:
    return {order_id: ClosedOrder(at, subject) for order_id, at, subject in rows}


def _codes(rows: list[tuple[Any, ...]]) -> CodeTable:
    return {
        name: CodeHash(user_id, bytes.fromhex(salt), bytes.fromhex(digest))
        for name, role, user_id, salt, digest in rows
        if "switches:emergency" in SCOPES_OF[Role(role)]
    }


def _drill_snapshot(rows: list[tuple[Any, ...]]) -> DrillSnapshot | None:
    """Return the running drills from the rows of the query `DRILLED`; None if there are none.

    Each row repeats all patterns (marks) of the names of instances that take part in drills.
    Without any, None is returned too.
    """
    if not rows or not (marks := Marks.from_patterns(rows[0][7])):
        return None
    drilled = [
        SnapshotEntry(
            *(switch_id, scope, key, Decimal(0), salt, drill_reason(reason)),
            engaged_at=engaged_at,
            expires_at=ends_by,
            on_expiry="release",
        )
        for switch_id, scope, key, salt, reason, engaged_at, ends_by, _ in rows
    ]
    return DrillSnapshot(marks, drilled)
