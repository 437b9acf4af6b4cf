"""A fleet reports its breakers: how soon each report is stored, and what that costs.

The server has a core of its own. PostgreSQL has whatever is left; what the process that serves the
reports needs of it is stated beside.
"""

import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from django.db import connection

from bench import clients, delays, stalls
from bench.delays import Delays
from bench.reporters import SETTLE_SECONDS
from bench.servers import Server, cpu_seconds

BREAKERS = 20
EVERY_SECONDS = 5.0
QUIET_SECONDS = 10.0
WRITES = """
    SELECT coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0) FROM pg_stat_user_tables
    WHERE relname LIKE 'breakers%%' OR relname IN ('core_instance', 'core_acknowledgement')
"""
BACKENDS = "SELECT pid FROM pg_stat_activity WHERE application_name = 'switchgear-dataplane'"


@dataclass(frozen=True)
class Ingest:
    """Of `count` instances at work for `seconds`; shares are of one core. `database_share` is that
    of the sessions of the server under test, None where PostgreSQL runs elsewhere. `writes` are
    rows written for each report that told nothing new."""

    count: int
    seconds: float
    delays: Delays
    lost: Counter[str]
    server_share: float
    database_share: float | None
    load_share: float
    late_ms: float
    writes: float


def measure(server: Server, token: str, count: int, seconds: float) -> Ingest:
    """Let `count` instances report every 5 s, at work and then with nothing new."""
    arguments = (server.port, token, count, BREAKERS, EVERY_SECONDS, seconds, QUIET_SECONDS)
    with ExitStack() as stack:
        stalled = stack.enter_context(stalls.watched())
        load = stack.enter_context(clients.running("bench.reporters", *arguments))
        load.line(60, "the first reports")
        before = server.cpu_seconds(), _database(), load.cpu_seconds(), time.monotonic()
        load.line(seconds + 30, "reports")
        after = server.cpu_seconds(), _database(), load.cpu_seconds(), time.monotonic()
        written = _written()
        seen = load.line(QUIET_SECONDS + SETTLE_SECONDS + 30, "unchanged reports")
        written = _written() - written
    took = after[3] - before[3]
    both = before[1] is not None and after[1] is not None
    return Ingest(
        count=count,
        seconds=seconds,
        delays=delays.summed_up(seen["delays_ms"], stalled.worst_ms),
        lost=Counter(seen["lost"]),
        server_share=(after[0] - before[0]) / took,
        database_share=(after[1] - before[1]) / took if both else None,
        load_share=(after[2] - before[2]) / took,
        late_ms=seen["late_ms"],
        writes=written / seen["quiet"],
    )


def _written() -> int:
    """Once it has been counted: sessions tell of what they wrote when they have been idle."""
    time.sleep(SETTLE_SECONDS)
    with connection.cursor() as cursor:
        cursor.execute(WRITES)
        return int(cursor.fetchone()[0])


def _database() -> float | None:
    """CPU seconds of PostgreSQL's processes for the data plane."""
    with connection.cursor() as cursor:
        cursor.execute(BACKENDS)
        found = [row[0] for row in cursor.fetchall()]
    try:
        return sum(cpu_seconds(pid) for pid in found if Path(f"/proc/{pid}").exists())
    except OSError:
        return None
