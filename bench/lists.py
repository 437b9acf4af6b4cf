"""Measures list endpoints of the API in requests per second, and latency of the audit search.

A few threads send the requests over persistent connections. Audit rows are inserted without their
hash chain, so the database must be disposable.
"""

import gc
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPConnection
from urllib.parse import quote

import psycopg
from django.conf import settings

from . import fixtures, http_client, latencies
from .latencies import Latencies
from .servers import HOST, ServerUnderTest

CALLERS = 4
ROWS = 100
SCOPES = ("switches:read", "audit:read", "breakers:read", "slo:read")
PAGES = {
    "switches": f"/api/v1/switches/?limit={ROWS}",
    "audit": f"/api/v1/audit/?limit={ROWS}",
    "dependencies": f"/api/v1/dependencies/?limit={ROWS}",
    "SLOs": f"/api/v1/slos/?limit={ROWS}",
}
ATTENTION = "/api/v1/attention/"
NEEDLES = {
    "in every row": "provider answers slowly",
    "in few rows": "zebra incident",
    "in old rows only": "legacy migration",
    "in no row": "nowhere to be found",
    "too short for the index": "ze",
}
SEARCHES = 30

_AUDIT = """
    INSERT INTO core_auditentry (id, at, actor_type, actor_name, action, target, reason, before,
                                 after, request_id, ip, previous_hash, hash)
    SELECT last + n, now() - (%(count)s - n) * interval '30 s', 'user', 'operator-' || n %% 40,
           'switch.engaged',
           'feature:payments.switch-' || n %% 10000,
           CASE WHEN n %% 5000 = 7 THEN 'The zebra incident: wrong totals ' || n
                WHEN n < %(count)s / 5 THEN 'Ticket of the legacy migration ' || n
                ELSE 'The payment provider answers slowly since ' || md5(n::text) END,
           'null', '{"state":"engaged"}', md5(n::text), '10.0.0.1', '', ''
    FROM generate_series(1, %(count)s) AS n,
         (SELECT coalesce(max(id), 0) AS last FROM core_auditentry) AS newest
"""


@dataclass(frozen=True)
class ListFigures:
    """Throughput, latency and CPU time per request of one list endpoint under load."""

    name: str
    requests_per_second: float
    cpu_ms: float
    latencies: Latencies


@dataclass(frozen=True)
class Lists:
    """The figures of all list endpoints, and of searches in an audit trail of `audited` rows."""

    pages: Sequence[ListFigures]
    attention: ListFigures
    audited: int
    searches: Sequence[tuple[str, Latencies]]


def insert_rows(audited: int) -> None:
    """Insert enough rows for a full page of every list, and `audited` audit rows."""
    from controlplane.core.clock import db_now

    insert_audit_rows(audited)
    fixtures.create_dependencies(ROWS)
    fixtures.insert_slos(ROWS, db_now(), fixtures.PAGE_RULE)


def insert_audit_rows(count: int) -> None:
    """Insert audit rows without their hash chain."""
    with psycopg.connect(settings.ENV.database.owner_url, autocommit=True) as owner:
        owner.execute("ALTER TABLE core_auditentry DISABLE TRIGGER core_audit_follows")
        owner.execute(_AUDIT, {"count": count})
        owner.execute("ALTER TABLE core_auditentry ENABLE TRIGGER core_audit_follows")


def clear() -> None:
    """Delete the inserted rows, except audit rows, which can't be deleted."""
    fixtures.delete_dependencies()
    fixtures.delete_slos()


def measure(web: ServerUnderTest, token: str, audited: int, seconds: float) -> Lists:
    pages = [_measure_list(web, token, name, path, seconds) for name, path in PAGES.items()]
    attention = _measure_list(web, token, "needs attention", ATTENTION, seconds)
    searches = [(name, _measure_search(web, token, text)) for name, text in NEEDLES.items()]
    return Lists(pages, attention, audited, searches)


def _measure_list(
    web: ServerUnderTest, token: str, name: str, path: str, seconds: float
) -> ListFigures:
    _send_requests(web, token, path, seconds / 4)  # Warms up.
    gc.collect()
    used, began = web.cpu_seconds(), time.monotonic()
    took = _send_requests(web, token, path, seconds)
    used, spent = web.cpu_seconds() - used, time.monotonic() - began
    return ListFigures(name, len(took) / spent, used / len(took) * 1e3, latencies.summarize(took))


def _send_requests(web: ServerUnderTest, token: str, path: str, seconds: float) -> list[float]:
    """Request `path` from several threads for `seconds`; return the latencies in milliseconds."""
    end = time.monotonic() + seconds

    def run(_number: int) -> list[float]:
        took: list[float] = []
        with closing(HTTPConnection(HOST, web.port, timeout=20)) as caller:
            while time.monotonic() < end:
                took.append(_request(caller, token, path))
        return took

    with ThreadPoolExecutor(CALLERS) as pool:
        return [each for took in pool.map(run, range(CALLERS)) for each in took]


def _measure_search(web: ServerUnderTest, token: str, text: str) -> Latencies:
    gc.collect()
    path = f"/api/v1/audit/?q={quote(text)}"
    with closing(HTTPConnection(HOST, web.port, timeout=20)) as caller:
        took = [_request(caller, token, path) for _ in range(SEARCHES + 1)]
    return latencies.summarize(took[1:])


def _request(caller: HTTPConnection, token: str, path: str) -> float:
    began = time.monotonic()
    caller.request("GET", path, headers=http_client.bearer(token))
    answer = caller.getresponse()
    answer.read()
    if answer.status != 200:
        raise SystemExit(f"bench: GET {path} was answered with {answer.status}")
    return (time.monotonic() - began) * 1e3
