"""After `provision` the application has its rights, the trail is protected, and an admin exists."""

import json
from dataclasses import replace
from io import StringIO

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from controlplane.accounts.models.people import User
from controlplane.accounts.people import services as people
from controlplane.core import provision
from controlplane.core.actors import system_actor
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict
from controlplane.core.roles import Role
from controlplane.core.tests import processes

pytestmark = pytest.mark.django_db
REFUSED = (
    "UPDATE core_auditentry SET reason = 'x'",
    "DELETE FROM core_auditentry",
    "TRUNCATE core_auditentry",
    "ALTER TABLE core_auditentry DISABLE TRIGGER ALL",
    "DROP TABLE core_auditentry",
    "DELETE FROM django_migrations",
    "SET session_replication_role = replica",
)


@pytest.fixture(autouse=True)
def _no_password_chosen(monkeypatch):
    monkeypatch.delenv("SWITCHGEAR_ADMIN_PASSWORD", raising=False)


@pytest.fixture
def role(settings):
    """The role the application runs as."""
    if settings.ENV.database.assume_role:
        provision.make_role(settings.DATABASE_RUNTIME_ROLE)
    return settings.DATABASE_RUNTIME_ROLE


def execute(statement):
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchone() if cursor.description else None


def run():
    out = StringIO()
    call_command("provision", stdout=out)
    (line,) = out.getvalue().splitlines()
    return json.loads(line)


def allowed(role, table):
    kinds = ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER")
    checks = ", ".join(f"has_table_privilege('{role}', '{table}', '{kind}')" for kind in kinds)
    return {kind for kind, yes in zip(kinds, execute(f"SELECT {checks}"), strict=True) if yes}


def test_rights_are_given_and_the_trail_stays_out_of_reach(role):
    provision.grant_rights(role)
    provision.grant_rights(role)

    changing = {"SELECT", "INSERT", "UPDATE", "DELETE"}
    assert allowed(role, "switches_switch") == changing
    assert allowed(role, "core_user") == changing
    assert allowed(role, "core_auditentry") == {"SELECT", "INSERT"}
    assert allowed(role, "django_migrations") == {"SELECT"}
    assert execute(f"SELECT has_sequence_privilege('{role}', 'core_token_id_seq', 'USAGE')")[0]


def test_tables_to_come_are_covered(role):
    provision.grant_rights(role)

    execute("CREATE TABLE later_table (id bigserial)")

    assert allowed(role, "later_table") == {"SELECT", "INSERT", "UPDATE", "DELETE"}
    assert execute(f"SELECT has_sequence_privilege('{role}', 'later_table_id_seq', 'USAGE')")[0]


def test_a_right_given_by_mistake_is_taken_back(role):
    execute(f"GRANT ALL ON core_auditentry TO {role}")

    provision.grant_rights(role)

    assert allowed(role, "core_auditentry") == {"SELECT", "INSERT"}


@pytest.mark.django_db(transaction=True)
def test_the_application_reads_and_writes_but_is_refused_what_would_rewrite(role, settings):
    run()
    address = processes.on_test_database(settings.ENV.database.url)

    with psycopg.connect(address, autocommit=True) as application:
        if settings.ENV.database.assume_role:
            application.execute(f"SET ROLE {role}")
        ((action,),) = application.execute("SELECT min(action) FROM core_auditentry WHERE id = 1")
        assert action == "user.created"
        application.execute("UPDATE switches_publication SET version = version")
        for statement in REFUSED:
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match=r"permission|owner"):
                application.execute(statement)


def test_the_owner_itself_is_no_role_to_run_as():
    (owner,) = execute("SELECT current_user")

    with pytest.raises(Conflict, match="same login"):
        provision.grant_rights(owner)


def test_a_role_that_is_not_there_is_one_clear_line(settings):
    settings.DATABASE_RUNTIME_ROLE = "switchgear_nobody"
    two_logins = replace(settings.ENV.database, assume_role=None)
    settings.ENV = replace(settings.ENV, database=two_logins)

    with pytest.raises(CommandError, match="switchgear_nobody") as caught:
        run()

    assert "\n" not in str(caught.value)


def about_users():
    """Return the audit rows of users only; a new installation also has those of services."""
    return list(AuditEntry.objects.filter(action__startswith="user."))


def test_the_first_run_makes_an_admin_and_prints_the_password():
    output = run()

    admin = User.objects.get(username="admin")
    assert admin.role == Role.ADMIN
    assert output["user"] == "admin"
    assert admin.check_password(output["password"])
    assert not admin.must_change_password
    (row,) = about_users()
    assert (row.action, row.actor_name) == ("user.created", "provision")


def test_a_lost_print_locks_nobody_out():
    first, second = run(), run()

    assert first["password"] != second["password"]
    assert User.objects.get(username="admin").check_password(second["password"])


def test_after_the_first_sign_in_the_password_stays():
    first = run()
    User.objects.update(last_login=timezone.now())

    second = run()

    assert second["password"] is None
    assert User.objects.get(username="admin").check_password(first["password"])


def test_a_chosen_password_is_set_and_never_printed(monkeypatch):
    monkeypatch.setenv("SWITCHGEAR_ADMIN_PASSWORD", "correct horse battery")

    first, second = run(), run()

    assert first["password"] is second["password"] is None
    assert "SWITCHGEAR_ADMIN_PASSWORD" in first["note"]
    assert User.objects.get(username="admin").check_password("correct horse battery")
    assert len(about_users()) == 1


def test_another_chosen_password_replaces_the_one_before_and_is_audited(monkeypatch):
    run()
    User.objects.update(last_login=timezone.now())
    monkeypatch.setenv("SWITCHGEAR_ADMIN_PASSWORD", "correct horse battery")

    run()

    assert User.objects.get(username="admin").check_password("correct horse battery")
    assert AuditEntry.objects.order_by("-id").first().action == "user.password_set"


def test_a_password_that_somebody_set_since_is_not_replaced_by_the_first_one(monkeypatch):
    monkeypatch.setenv("SWITCHGEAR_ADMIN_PASSWORD", "correct horse battery")
    run()
    admin = User.objects.get(username="admin")
    people.set_password(
        user=admin, password="a fine one of their own", actor=system_actor("shell"), now=db_now()
    )

    output = run()

    admin.refresh_from_db()
    assert admin.check_password("a fine one of their own")
    assert "after the first start" in output["note"]


def test_no_second_door_is_opened_where_other_admins_are():
    User.objects.create_user("alice", "correct horse battery", role=Role.ADMIN)

    output = run()

    assert output["user"] is output["password"] is None
    assert output["note"] == "the user admin doesn't exist, but other admins do"
    assert not User.objects.filter(username="admin").exists()
