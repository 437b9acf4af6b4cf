"""Measures a fleet that reports its breakers: latency of the reports, and CPU time they cost.

Server and load are each pinned to a CPU core of their own; PostgreSQL is not pinned.
"""

import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from django.db import connection

from . import latencies, load_processes, stalls
from .latencies import Latencies
from .report_clients import SETTLE_SECONDS
from .servers import ServerUnderTest, cpu_seconds

BREAKERS = 20
EVERY_SECONDS = 5.0
QUIET_SECONDS = 10.0
WRITES = """
    SELECT coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0) FROM pg_stat_user_tables
    WHERE relname LIKE 'breakers%%' OR relname IN ('core_instance', 'core_acknowledgement')
"""
BACKENDS = "SELECT pid FROM pg_stat_activity WHERE application_name = 'switchgear-dataplane'"


@dataclass(frozen=True)
class ReportCosts:
    """The costs of `count` instances that report for `seconds`; shares are fractions of a CPU core.

    `database_share` is for the server's database connections, None if PostgreSQL runs elsewhere.
    `writes` are the rows written per unchanged report.
    """

    count: int
    seconds: float
    latencies: Latencies
    lost: Counter[str]
    server_share: float
    database_share: float | None
    load_share: float
    late_ms: float
    writes: float


def measure(server: ServerUnderTest, token: str, count: int, seconds: float) -> ReportCosts:
    """Return the costs of `count` instances that report every 5 s.

    Their counters grow at first; then reports without changes follow.
    """
    arguments = (server.port, token, count, BREAKERS, EVERY_SECONDS, seconds, QUIET_SECONDS)
    running = load_processes.running("bench.report_clients", *arguments)
    with stalls.watch_stalls() as stalled, running as load:
        load.line(60, "the first reports")
        before = server.cpu_seconds(), _database_cpu_seconds(), load.cpu_seconds(), time.monotonic()
        load.line(seconds + 30, "reports")
        after = server.cpu_seconds(), _database_cpu_seconds(), load.cpu_seconds(), time.monotonic()
        written = _count_written_rows()
        result = load.line(QUIET_SECONDS + SETTLE_SECONDS + 30, "unchanged reports")
        written = _count_written_rows() - written
    took = after[3] - before[3]
    both = before[1] is not None and after[1] is not None
    return ReportCosts(
        count=count,
        seconds=seconds,
        latencies=latencies.summarize(result["delays_ms"], stalled.worst_ms),
        lost=Counter(result["lost"]),
        server_share=(after[0] - before[0]) / took,
        database_share=(after[1] - before[1]) / took if both else None,
        load_share=(after[2] - before[2]) / took,
        late_ms=result["late_ms"],
        writes=written / result["quiet"],
    )


def _count_written_rows() -> int:
    """Wait until PostgreSQL has published its statistics; return the rows written so far."""
    time.sleep(SETTLE_SECONDS)
    with connection.cursor() as cursor:
        cursor.execute(WRITES)
        return int(cursor.fetchone()[0])


def _database_cpu_seconds() -> float | None:
    """Return the CPU seconds that PostgreSQL has spent on the data plane's connections."""
    with connection.cursor() as cursor:
        cursor.execute(BACKENDS)
        found = [row[0] for row in cursor.fetchall()]
    try:
        return sum(cpu_seconds(pid) for pid in found if Path(f"/proc/{pid}").exists())
    except OSError:
        return None
