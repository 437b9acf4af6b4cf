"""Status of data plane processes and relays, and its rows in the database."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

import orjson

from controlplane.dataplane.postgres.database import Connection

# The newest status wins, regardless of the order of writes. Times after the database's count as
# now, so that a wrong clock can't block newer statuses. `counted_seq` is not part of a status. A
# relay can't replace the status of a data plane.
UPSERT_STATUSES = """
    INSERT INTO core_dataplane AS p (process, name, upstream, is_relay, release, epoch, version,
                                     age_seconds, held, instances, started_at, heard_at, is_stopped)
    SELECT process, name, upstream, is_relay, release, epoch, version, age_seconds, held,
           instances, least(started_at, clock_timestamp()), least(heard_at, clock_timestamp()),
           coalesce(is_stopped, false)
    FROM json_to_recordset(%s::json)
         AS new (process uuid, name text, upstream text, is_relay boolean, release text, epoch uuid,
                 version bigint, age_seconds double precision, held integer, instances integer,
                 started_at timestamptz, heard_at timestamptz, is_stopped boolean)
    ORDER BY process
    ON CONFLICT (process) DO UPDATE SET
        name = EXCLUDED.name, upstream = EXCLUDED.upstream, is_relay = EXCLUDED.is_relay,
        release = EXCLUDED.release, epoch = EXCLUDED.epoch, version = EXCLUDED.version,
        age_seconds = EXCLUDED.age_seconds, held = EXCLUDED.held, instances = EXCLUDED.instances,
        started_at = EXCLUDED.started_at, heard_at = EXCLUDED.heard_at,
        is_stopped = EXCLUDED.is_stopped
    WHERE EXCLUDED.heard_at > p.heard_at AND EXCLUDED.is_relay = p.is_relay
"""


@dataclass(frozen=True, kw_only=True)
class ProcessStatus:
    """The status of a data plane or relay process at `heard_at`; see `core.DataPlane`.

    A process of a relay keeps its `process` over restarts, together with its spool. Of the
    `polling` instances that polled it lately, `applied_orders` are those that apply each emergency
    order; the database doesn't store these two.
    """

    process: UUID
    name: str
    upstream: str = ""
    is_relay: bool = False
    release: str = ""
    epoch: UUID | None = None
    version: int | None = None
    age_seconds: float | None = None
    held: int = 0
    instances: int = 0
    polling: int = 0
    applied_orders: Mapping[str, int] = field(default_factory=dict)
    started_at: datetime
    heard_at: datetime
    is_stopped: bool = False


async def write_statuses(connection: Connection, statuses: Iterable[ProcessStatus]) -> None:
    """Write the latest status of each process."""
    latest: dict[UUID, ProcessStatus] = {}
    for status in statuses:
        known = latest.setdefault(status.process, status)
        if status.heard_at > known.heard_at:
            latest[status.process] = status
    if latest:
        rows = orjson.dumps([*latest.values()]).decode()
        await connection.execute(UPSERT_STATUSES, (rows,))
