"""The previous release, and a database filled by it: the start of an upgrade."""

import os
import subprocess
import sys
import tarfile
from io import BytesIO
from pathlib import Path

import psycopg

from controlplane.tests.installation import ROOT

COMMIT = "47aa7aa8be2ad46d409c92900449d4c6536703fc"
LAST_MIGRATIONS = (
    ("core", "0024_target_transport_settings"),
    ("breakers", "0005_alarms_of_outages"),
    ("slo", "0004_rename_fields"),
)
"""The last migrations of that release in each app that has new ones."""
AUDIT_ROWS = 3000
SEED = """
from dataclasses import replace
from uuid import uuid4

from django.apps import apps
from django.conf import settings
from django.db import DatabaseError, models, transaction

from breakers.dead_letters.tests.heaps import Heap
from controlplane.core.actors import system_actor
from controlplane.core.audit import services as audit
from controlplane.core.clock import db_now
from controlplane.notify.delivery.tests.message_samples import hook
from controlplane.notify.models.targets import Route
from controlplane.tests.security import existing_objects, markup

NOW = db_now()
GIVEN = {"verdict": "fail", "state": "ok"}
KINDS = [
    ((models.CharField, models.TextField), "x"),
    (models.DateTimeField, NOW),
    (models.DateField, NOW.date()),
    (models.JSONField, {}),
    (models.BooleanField, False),
    (models.FloatField, 0.5),
    ((models.IntegerField, models.DecimalField), 1),
    (models.UUIDField, uuid4()),
    (models.BinaryField, b"x"),
    (models.GenericIPAddressField, "127.0.0.1"),
]


def value(field):
    if field.name in GIVEN:
        return GIVEN[field.name]
    if field.has_default() and not field.unique:
        return field.get_default()
    if field.null:
        return None
    if field.choices:
        return field.flatchoices[0][0]
    if field.is_relation:
        related = field.related_model
        return related._default_manager.first() or fill(related)
    return next((given for kinds, given in KINDS if isinstance(field, kinds)), [])


def fill(model):
    fields = [
        field
        for field in model._meta.local_concrete_fields
        if not isinstance(field, models.AutoField) and not field.generated
    ]
    return model._default_manager.create(**{field.name: value(field) for field in fields})


settings.DEAD_LETTERS = replace(
    settings.DEAD_LETTERS, patterns=(("previous:dlq:{stream}", "previous:{stream}"),)
)
letters = Heap("previous")
ada = markup.build(letters)
existing_objects.more(ada, letters)
target = hook("receiver", webhook_url=RECEIVER)
Route.objects.create(event="switch.engaged", scope="", severity="", target=target, created_at=NOW)
with transaction.atomic():
    audit.record_many(
        [
            {
                "actor": system_actor("seed"), "action": "switch.described", "now": NOW,
                "target": f"feature:f{n}", "reason": f"row {n}", "before": None, "after": {"n": n},
            }
            for n in range(AUDIT_ROWS)
        ]
    )
for model in apps.get_models(include_auto_created=True):
    if not model._meta.proxy and not model._default_manager.exists():
        fill(model)
"""
TABLES = """
SELECT c.relname FROM pg_class c
WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relnamespace = 'public'::regnamespace
"""


class Missing(Exception):
    """The commit is not in this clone."""


def unpack(folder: Path) -> Path:
    """Return the tree of the previous release: `UPGRADE_FROM`, or unpacked to `folder`.

    Raises :class:`Missing` in a clone without its history.
    """
    if given := os.environ.get("UPGRADE_FROM"):
        return Path(given)
    command = ["git", "archive", "--format=tar", COMMIT]
    try:
        found = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=60, check=False)
    except FileNotFoundError as error:
        raise Missing("git is not installed") from error
    if found.returncode:
        raise Missing(found.stderr.decode().strip())
    with tarfile.open(fileobj=BytesIO(found.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


def manage(root: Path, variables: dict[str, str], *arguments: str) -> str:
    """Run `manage.py …` of the release in `root`; return its standard output."""
    done = subprocess.run(
        [sys.executable, "manage.py", arguments[0], "--traceback", *arguments[1:]],
        cwd=root,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def fill(root: Path, variables: dict[str, str], receiver: str) -> None:
    """Fill every table of the release in `root`; `receiver` is the URL of a webhook."""
    code = f"RECEIVER, AUDIT_ROWS = {receiver!r}, {AUDIT_ROWS}\n{SEED}"
    manage(root, variables, "migrate", "--noinput")
    manage(root, variables, "provision")
    manage(root, variables, "shell", "-v0", "-c", code)


def read_all(owner_url: str) -> dict[str, list[dict[str, object]]]:
    """Return the rows of every table, as JSON, in no order."""
    with psycopg.connect(owner_url) as database:
        names = [name for (name,) in database.execute(TABLES).fetchall()]
        return {
            name: [row for (row,) in database.execute(f"SELECT to_jsonb(t) FROM {name} t")]
            for name in names
        }
