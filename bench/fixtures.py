"""Fixtures of benchmarks: a migrated database, tokens, switches, dependencies."""

import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import django
import psycopg
from django.db import connection, transaction

from .servers import ROOT

if TYPE_CHECKING:
    from django.db.backends.utils import CursorWrapper

    from switches.models import Episode

SETTINGS = {"DJANGO_SETTINGS_MODULE": "controlplane.settings", "ALLOWED_HOSTS": "127.0.0.1"}
USER = "admin"
PASSWORD = secrets.token_urlsafe(15)
OF_SLOS = (
    "slo_standing", "slo_turn", "slo_sample", "slo_series", "slo_delayed", "slo_minute", "slo_hour",
    "slo_sli", "slo_slo",
)  # fmt: skip
REASON = "Benchmark: the payment provider answers with wrong totals"

PAGE_RULE = {"long": "1h", "short": "5m", "burn_rate": 14, "severity": "page"}
TICKET_RULE = {"long": "6h", "short": "30m", "burn_rate": 6, "severity": "ticket"}

_SLOS = """
    INSERT INTO slo_slo (name, service, kind, target, window_days, source, rules, min_events,
                         actions, description, owner, runbook_url, version, created_at, changed_at)
    SELECT 'bench-' || n, 'bench', 'availability', 0.999, 30, '{"type": "push"}', %(rules)s,
           0, '[]', '', '', '', 1, %(at)s, %(at)s
    FROM generate_series(1, %(count)s) AS n
"""
_DEPENDENCIES = """
    INSERT INTO breakers_dependency (caller, callee, protocol, criticality, mode, owner,
                                     runbook_url, notes, managed_by, document, on_outage, version,
                                     registered_at, changed_at)
    SELECT 'bench-' || n, callee, protocol, criticality, mode, owner, runbook_url, notes,
           managed_by, document, on_outage, version, registered_at, changed_at
    FROM generate_series(1, %s) AS n,
         (SELECT * FROM breakers_dependency WHERE document <> '{}' ORDER BY id LIMIT 1) AS one
"""


def prepare() -> None:
    """Prepare the database as `make run` does, and set up Django in this process.

    If the database already has switches, it may be in use: end the run.
    """
    for command in (("migrate",), ("provision",), ("collectstatic", "--noinput")):
        subprocess.run(
            [sys.executable, "manage.py", *command, "--verbosity", "0"],
            cwd=ROOT,
            env={**os.environ, "SWITCHGEAR_ADMIN_PASSWORD": PASSWORD},
            check=True,
            stdout=subprocess.DEVNULL,
        )
    os.environ.update(SETTINGS)
    django.setup()
    from switches.models import Switch

    if Switch.objects.exists():
        print("bench: this database is in use; DATABASE_URL must name one to throw away")
        sys.exit(2)


def make_token(*scopes: str) -> str:
    """Create an API token with `scopes` (default: reading switches) and return its secret text."""
    from controlplane.accounts.people.services import find_first_admin
    from controlplane.accounts.tokens import services
    from controlplane.core.actors import system_actor
    from controlplane.core.clock import db_now

    owner = find_first_admin()
    if owner is None:
        raise SystemExit("bench: provisioning made no admin")
    _, text = services.create_token(
        name="bench",
        owner=owner,
        scopes=list(scopes) or ["switches:read"],
        actor=system_actor("bench"),
        now=db_now(),
    )
    return text


def switch_key(number: int) -> str:
    """Return the key of the switch `number` of those that :func:`create_switches` makes."""
    return f"payments.switch-{number}"


def create_switches(known: int, engaged: int) -> int:
    """Replace all switches by `known` new ones, `engaged` of them engaged; return the new version.

    The version is that of the snapshot. All switches but one are inserted directly, because the
    console's own functions would take minutes for thousands.
    """
    from controlplane.core.clock import db_now
    from switches.models import Publication

    keys = [switch_key(n) for n in range(known - 1)]
    with transaction.atomic():
        head = Publication.objects.select_for_update().get()
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM switches_episode")
            cursor.execute("DELETE FROM switches_switch")
        insert_switches(keys, engaged - 1, db_now(), engaged_version=head.version)
        head.registrations += known + 1
        head.save()
    version, _ = next(engage(iter(["engaged-through-the-door"])))
    return version


def insert_switches(
    keys: Sequence[str], engaged: int, now: datetime, **fields: object
) -> list["Episode"]:
    """Insert feature switches; engage the first `engaged` of them, and return their episodes.

    `fields` are further fields of each episode.
    """
    from switches.models import Episode, OnExpiry, Switch

    Switch.objects.bulk_create(
        Switch(id=f"feature:{each}", scope="feature", key=each, registered_at=now) for each in keys
    )
    return Episode.objects.bulk_create(
        Episode(
            switch_id=f"feature:{each}",
            reason=REASON,
            engaged_by_type="system",
            engaged_by_name="bench",
            engaged_by_identity="system:bench",
            engaged_at=now,
            expires_at=now + timedelta(hours=24),
            on_expiry=OnExpiry.HOLD,
            salt=secrets.token_hex(8),
            **fields,
        )
        for each in keys[:engaged]
    )


def engage(keys: Iterator[str]) -> Iterator[tuple[int, int]]:
    """Engage the features `keys` one by one; yield each snapshot version and commit time (ns)."""
    from controlplane.core.actors import system_actor
    from controlplane.core.clock import db_now
    from switches import services

    actor = system_actor("bench")
    for key in keys:
        committed: list[int] = []
        with transaction.atomic():
            # The first callback of this transaction runs between COMMIT and the wake-up.
            transaction.on_commit(lambda moments=committed: moments.append(time.monotonic_ns()))
            done = services.engage(
                scope="feature",
                key=key,
                reason=REASON,
                expires_in="24h",
                actor=actor,
                now=db_now(),
            )
        yield done.switch.version, committed[0]


def create_dependencies(count: int) -> None:
    """Add `count` dependencies, copies of a configured one."""
    with connection.cursor() as cursor:
        cursor.execute(_DEPENDENCIES, [count])


def delete_dependencies() -> None:
    """Delete the dependencies that :func:`create_dependencies` added."""
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM breakers_dependency WHERE caller LIKE 'bench-%%'")


def delete_slos() -> None:
    """Delete all SLOs and their counters."""
    with slow_cursor() as cursor:
        for table in OF_SLOS:
            cursor.execute(f"DELETE FROM {table}")


def insert_slos(count: int, now: datetime, *rules: Mapping[str, object]) -> None:
    """Insert `count` SLOs, each with the burn-rate rules `rules`."""
    with slow_cursor() as cursor:
        cursor.execute(_SLOS, {"at": now, "count": count, "rules": json.dumps(rules)})


def analyze() -> None:
    """Update the planner's statistics of inserted rows, as autovacuum would after a while."""
    from django.conf import settings

    with psycopg.connect(settings.ENV.database.owner_url, autocommit=True) as owner:
        owner.execute("VACUUM ANALYZE")


@contextmanager
def slow_cursor() -> Iterator["CursorWrapper"]:
    """Context manager: a cursor without a statement timeout."""
    with connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = 0")
        yield cursor
        cursor.execute("RESET statement_timeout")
