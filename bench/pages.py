"""Measures every large page of the console with thousands of rows behind it."""

import gc
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import psycopg
from django.conf import settings

from . import fixtures, latencies, lists
from .latencies import Latencies
from .page_watch import Browser

SWITCHES, ENGAGED = 10_000, 1_000
DEPENDENCIES = 10_000
SERVICES, INSTANCES = 300, 3
"""Callers, and the instances of each."""
FETCHES, WARM_UPS = 40, 3
PAGES = {
    "switchboard": "/",
    "switchboard, search": "/?q=switch-77",
    "switch, engaged": "/switches/feature/payments.switch-6/",
    "engage dialog, a key": "/switches/engage/?scope=feature&key=payments.switch-6000",
    "find anything": "/find/part/?q=switch-12",
    "breakers board": "/breakers/",
    "breakers board, failing": "/breakers/?state=failing",
    "breakers board, search": "/breakers/?q=dep-77",
    "fallbacks": "/breakers/fallbacks/",
    "map": "/breakers/map/",
    "map of a service": "/breakers/map/?service=bench-7",
    "dependency": "/breakers/bench-7/dep-7/",
    "needs attention": "/attention/",
    "audit": "/audit/",
    "audit, search": "/audit/?q=zebra+incident",
    "report of this week": f"/reports/weekly/{datetime.now(UTC):%G-W%V}/",
}

_ROWS = """
    INSERT INTO breakers_dependency (caller, callee, protocol, criticality, mode, owner,
                                     runbook_url, notes, managed_by, document, on_outage, version,
                                     registered_at, changed_at)
    SELECT 'bench-' || n %% %(services)s, 'dep-' || n, protocol, criticality, mode, owner,
           runbook_url, notes, managed_by, document, on_outage, version, registered_at, changed_at
    FROM generate_series(1, %(dependencies)s) AS n,
         (SELECT * FROM breakers_dependency WHERE document <> '{}' ORDER BY id LIMIT 1) AS one;
    INSERT INTO core_instance (id, service, boot, reported_at, heard_at, first_heard_at, reported,
                               checks)
    SELECT 'bench-' || s || '/' || n, 'bench-' || s, gen_random_uuid(), now(), now(), now(), '{}',
           jsonb_build_object('feature:payments.switch-' || 30 * s + 10 * n, jsonb_build_object(
               'allowed', 1000, 'blocked', 0, 'now', 9, 'before', 9, 'now_blocked', 0,
               'before_blocked', 0, 'minute', floor(extract(epoch FROM now()) / 60)::bigint,
               'seen', to_char(now() AT TIME ZONE 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')))
    FROM generate_series(0, %(services)s - 1) AS s, generate_series(1, %(instances)s) AS n;
    INSERT INTO breakers_breakerstate (dependency_id, instance, boot, state, mode, since,
                                       failure_rate, slow_rate, calls, changed_at)
    SELECT d.id, i.id, i.boot, CASE WHEN d.id %% 500 = 3 THEN 'open' ELSE 'closed' END, 'normal',
           now(), 0.01, 0, 100, now()
    FROM breakers_dependency d JOIN core_instance i ON i.service = d.caller;
    INSERT INTO breakers_minute (dependency_id, minute, worst, open, half_open, instances, success,
                                 failure, timeout, slow, rejected, fallback, retry)
    SELECT id, date_trunc('minute', now()) + m * interval '1 minute', 1, 0, 0, 3, 100,
           CASE WHEN id %% 100 = 7 THEN 20 ELSE id %% 3 END, 0, 0, 0, 0, 0
    FROM breakers_dependency, generate_series(-59, 1) AS m;
    INSERT INTO core_checkcount (switch, seconds, start, allowed, blocked)
    SELECT 'feature:payments.switch-' || n, 60,
           60 * (floor(extract(epoch FROM now()) / 60)::bigint + m), 1000, 0
    FROM generate_series(1, %(switches)s) AS n, generate_series(-59, 1) AS m;
"""
_REPORT = "UPDATE core_instance SET reported_at = now(), heard_at = now()"


@dataclass(frozen=True)
class Pages:
    """The latencies of pages by name, and the numbers of rows behind them."""

    audited: int
    pages: Sequence[tuple[str, Latencies]]


def insert_rows(audited: int) -> None:
    """Insert switches, reported dependencies, counted checks, and `audited` audit rows."""
    fixtures.create_switches(SWITCHES, ENGAGED)
    lists.insert_audit_rows(audited)
    values = {
        "services": SERVICES,
        "dependencies": DEPENDENCIES,
        "instances": INSTANCES,
        "switches": SWITCHES,
    }
    with psycopg.connect(settings.ENV.database.owner_url, autocommit=True) as owner:
        psycopg.ClientCursor(owner).execute(_ROWS, values)
    fixtures.analyze()


def clear() -> None:
    """Delete the inserted rows, except audit rows, which can't be deleted."""
    with psycopg.connect(settings.ENV.database.owner_url, autocommit=True) as owner:
        owner.execute("TRUNCATE breakers_minute, breakers_breakerstate, core_checkcount")
        owner.execute("DELETE FROM core_instance WHERE service LIKE 'bench-%'")
    fixtures.delete_dependencies()


def measure(person: Browser, audited: int) -> Pages:
    return Pages(audited, [(name, measure_page(person, path)) for name, path in PAGES.items()])


def measure_page(person: Browser, path: str) -> Latencies:
    """Fetch a page repeatedly while all instances have just reported."""
    with fixtures.slow_cursor() as cursor:
        cursor.execute(_REPORT)
    gc.collect()
    took = []
    for _ in range(WARM_UPS + FETCHES):
        began = time.monotonic()
        person.ask("GET", path, 200)
        took.append((time.monotonic() - began) * 1e3)
    return latencies.summarize(took[WARM_UPS:])
