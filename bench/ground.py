"""The ground the benchmarks stand on: a migrated database, a token, 100 engaged switches.

Goes through the product's own services, so what is measured is what operators cause.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator

import django
from django.db import transaction

from bench.servers import ROOT

SETTINGS = {"DJANGO_SETTINGS_MODULE": "controlplane.settings", "ALLOWED_HOSTS": "127.0.0.1"}
REASON = "Benchmark: the payment provider answers with wrong totals"


def prepare() -> None:
    """Migrate and provision as the owner; from here on Django is set up in this process.

    Ends the run on a database that already has switches: somebody may depend on them.
    """
    for command in ("migrate", "provision"):
        subprocess.run(
            [sys.executable, "manage.py", command, "--verbosity", "0"],
            cwd=ROOT,
            check=True,
            stdout=subprocess.DEVNULL,
        )
    os.environ.update(SETTINGS)
    django.setup()
    from switches.models import Switch

    if Switch.objects.exists():
        print("bench: this database is in use; DATABASE_URL must name one to throw away")
        sys.exit(2)


def make_token() -> str:
    """A token that may read switches, owned by the first admin."""
    from controlplane.core.actors import system
    from controlplane.core.clock import db_now
    from controlplane.core.people.services import first_admin
    from controlplane.core.tokens import services

    owner = first_admin()
    if owner is None:
        raise SystemExit("bench: provisioning made no admin")
    _, text = services.create(
        name="bench", owner=owner, scopes=["switches:read"], actor=system("bench"), now=db_now()
    )
    return text


def engage(keys: Iterator[str]) -> Iterator[tuple[int, int]]:
    """Engage features one by one; yields (version, nanoseconds of the moment of its commit)."""
    from controlplane.core.actors import system
    from controlplane.core.clock import db_now
    from switches import services

    actor = system("bench")
    for key in keys:
        committed: list[int] = []
        with transaction.atomic():
            # The first callback of this transaction: runs between COMMIT and the wake-up.
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
