"""Insertion of emergency orders into the database, which reconciles them with its switches."""

from collections.abc import Iterable, Mapping
from uuid import UUID

import orjson
import psycopg
import structlog

from controlplane.dataplane.config import Config
from switches.emergency.orders import Order, order_document

from .database import Connection, connect

# The order's own columns; the others have defaults. An order of the same id is kept, because
# another data plane has inserted it. `planes` grows while more data planes hold the order.
INSERT_ORDERS = """
    INSERT INTO switches_emergencyorder
        (id, action, switch, order_id, reason, expires_in, by_type, by_name, by_id, at, plane,
         relay, planes)
    SELECT id, action, switch, "order", reason, expires_in, by->>'type', by->>'name',
           (by->>'id')::bigint, at, plane,
           coalesce(relay->>'key', ''), planes
    FROM jsonb_to_recordset(%s::jsonb) AS given (
        id uuid, action text, switch text, "order" uuid, reason text, expires_in text, by jsonb,
        at timestamptz, plane text, relay jsonb, planes text[])
    ORDER BY id
    ON CONFLICT (id) DO UPDATE SET planes = ARRAY(
        SELECT name FROM unnest(switches_emergencyorder.planes || excluded.planes) AS name
        GROUP BY name ORDER BY name)
    WHERE NOT switches_emergencyorder.planes @> excluded.planes
"""
HAS_CLOSED = """
    SELECT EXISTS (
        SELECT FROM switches_emergencyorder WHERE id = ANY(%s::uuid[]) AND closed_at IS NOT NULL)
"""
AT_ONCE = 500

log = structlog.get_logger(__name__)


async def insert_orders(
    config: Config, orders: Iterable[Order], holders: Mapping[UUID, Iterable[str]]
) -> bool:
    """Insert orders that the database lacks, and add who holds them, over an own connection.

    Return True if the database has closed one of them. An order that the database refuses as
    invalid is logged and left out. Raise psycopg's errors.
    """
    documents = [{**order_document(order), "planes": sorted(holders[order.id])} for order in orders]
    connection = await connect(config)
    try:
        for start in range(0, len(documents), AT_ONCE):
            await _insert(connection, documents[start : start + AT_ONCE])
        cursor = await connection.execute(HAS_CLOSED, ([row["id"] for row in documents],))
        return (await cursor.fetchone()) == (True,)
    finally:
        connection.pgconn.finish()


async def _insert(connection: Connection, documents: list[dict[str, object]]) -> None:
    try:
        await connection.execute(INSERT_ORDERS, (orjson.dumps(documents).decode(),))
    except (psycopg.DataError, psycopg.IntegrityError) as error:
        if len(documents) > 1:
            for document in documents:
                await _insert(connection, [document])
            return
        order_id = documents[0]["id"]
        log.error("emergency_order.refused_by_database", order=order_id, error=str(error))
