"""Migrations that are compatible with the previous release, and those that are refused."""

import pytest
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models
from django.db.migrations.loader import MigrationLoader

from controlplane.database import migration_safety
from controlplane.database.checks import check_migration_safety

GROWING = {"core.OutboxMessage"}
INDEX = models.Index(fields=["created_at"], name="another")


@pytest.fixture(scope="module")
def before():
    return MigrationLoader(None).project_state(("core", "0012_holds"))


def judged(before, *operations, release="0.2.0", **marks):
    made = type("Migration", (migrations.Migration,), {"operations": list(operations), **marks})
    return migration_safety.check_migration(
        made("0099_next", "core"), before, release=release, growing=GROWING
    )


def altered(name, field):
    return migrations.AlterField("outboxmessage", name, field)


ONE = models.UniqueConstraint(fields=["name"], name="one")
EXPANDS = [
    migrations.CreateModel("New", [("id", models.BigAutoField(primary_key=True))]),
    migrations.AddField("token", "note", models.CharField(max_length=9, null=True)),
    migrations.AddField("token", "note", models.CharField(max_length=9, db_default="")),
    migrations.RemoveConstraint("outboxmessage", "outbox_state_known"),
    migrations.RemoveIndex("outboxmessage", "outbox_due"),
    migrations.AddIndex("token", models.Index(fields=["created_at"], name="another")),
    AddIndexConcurrently("outboxmessage", INDEX),
    altered("event", models.CharField(max_length=65)),
    altered("event", models.CharField(max_length=64, null=True)),
    altered("event", models.CharField(max_length=64, choices=[("a", "A")], default="a")),
]
CONTRACTS = [
    (
        migrations.AddField("token", "note", models.CharField(max_length=9, default="")),
        "db_default",
    ),
    (migrations.RemoveField("token", "revoked_at"), "removes"),
    (migrations.RenameField("token", "revoked_at", "ended_at"), "renames"),
    (migrations.RenameModel("Token", "Key"), "renames"),
    (migrations.DeleteModel("Thread"), "removes"),
    (migrations.AlterModelTable("thread", "threads"), "renames"),
    (migrations.AddIndex("outboxmessage", INDEX), "AddIndexConcurrently"),
    (
        migrations.AddConstraint("token", models.UniqueConstraint(fields=["name"], name="one")),
        "for",
    ),
    (altered("event", models.CharField(max_length=63)), "another column"),
    (altered("event", models.TextField()), "another column"),
    (altered("finished_at", models.DateTimeField()), "another column"),
    (altered("event", models.CharField(max_length=64, unique=True)), "another column"),
    (migrations.RunSQL("SELECT 1", "SELECT 1"), "explain in `expands`"),
    (
        migrations.SeparateDatabaseAndState([migrations.RemoveField("token", "revoked_at")], []),
        "removes",
    ),
]


def test_our_own_migrations_let_the_release_before_go_on():
    assert check_migration_safety() == []


def test_each_app_of_ours_has_a_baseline_that_exists():
    known = MigrationLoader(None).disk_migrations
    ours = {app for app, _ in known if app in ("core", "switches", "breakers", "slo")}
    assert ours == set(migration_safety.BASELINE)
    assert all(baseline in known for baseline in migration_safety.BASELINE.items())


@pytest.mark.parametrize("operation", EXPANDS, ids=lambda it: it.describe())
def test_what_only_adds_is_let_through(before, operation):
    assert judged(before, operation) == []


@pytest.mark.parametrize(("operation", "why"), CONTRACTS, ids=lambda it: str(it)[:40])
def test_what_takes_away_is_named_with_what_to_do(before, operation, why):
    (problem,) = judged(before, operation)

    assert problem.startswith("core.0099_next: ")
    assert why in problem


def test_what_a_migration_has_just_made_is_its_own(before):
    made = migrations.CreateModel("New", [("id", models.BigAutoField(primary_key=True))])
    unique = models.UniqueConstraint(fields=["id"], name="once")

    assert judged(before, made, migrations.AddConstraint("new", unique)) == []


def test_taking_away_is_for_a_release_after_the_last_that_used_it(before):
    gone = migrations.RemoveField("token", "revoked_at")

    assert judged(before, gone, release="0.10.0", last_used_in="0.9.2") == []
    assert judged(before, gone, release="0.9.2", last_used_in="0.9.2") != []


def test_what_can_not_be_judged_is_let_through_with_a_reason(before):
    assert judged(before, migrations.RunSQL("SELECT 1"), expands="It only reads.") == []
