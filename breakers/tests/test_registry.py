"""Tests of the registry: versions, messages, and changes without effect."""

from dataclasses import replace

import pytest
from django.db import OperationalError, connection, transaction

from breakers import names, publication
from breakers.models import Dependency, Override, Registry
from breakers.services import catalog, overrides, registry
from breakers.tests.registered import (
    ADMIN,
    OPERATOR,
    REASON,
    VIEWER,
    dependency,
    discovered,
)
from controlplane.core.actors import system_actor
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict, Forbidden, InvalidInput, NotFound
from controlplane.core.http.tests.callers import at_once
from controlplane.core.roles import Role
from controlplane.tests.rows import multiply

pytestmark = pytest.mark.django_db


def last_row():
    return AuditEntry.objects.order_by("-id").first()


def test_new_dependency_is_numbered_and_audited(now):
    found = dependency(now, notes="Proxy of NL2SQL")

    assert found.version == Registry.objects.get().version == 1
    assert found.document["breaker"]["failure_count"] == 5
    assert (found.criticality, found.notes) == ("high", "Proxy of NL2SQL")
    row = last_row()
    assert (row.action, row.target, row.actor_name) == (
        "dependency.registered",
        "dependency:core->oracle",
        "ada",
    )
    assert row.before == "null"
    assert '"failure_threshold":5' in row.after


def test_same_policy_again_changes_nothing(now):
    before = dependency(now)
    rows = AuditEntry.objects.count()

    again = dependency(db_now())

    assert again.version == before.version
    assert again.changed_at == before.changed_at
    assert AuditEntry.objects.count() == rows


def test_other_policy_is_a_new_version_with_before_and_after(now):
    first = dependency(now)

    second = dependency(db_now(), timeout_ms=90_000)

    assert second.version == first.version + 1
    assert second.registered_at == now
    row = last_row()
    assert row.action == "dependency.changed"
    assert '"timeout_ms":60000' in row.before
    assert '"timeout_ms":90000' in row.after


def test_reported_dependency_becomes_a_registered_one(now):
    row = discovered(now)
    later = db_now()

    found = dependency(later)

    assert found.pk == row.pk
    assert found.registered_at == later
    assert found.document


def test_removed_dependency_is_news_and_hides(now):
    dependency(now)

    gone = registry.remove_dependency(caller="core", callee="oracle", actor=ADMIN, now=db_now())

    assert gone.version == Registry.objects.get().version == 2
    assert gone.document == {}
    assert last_row().action == "dependency.removed"
    with pytest.raises(NotFound):
        registry.find_dependency("core", "oracle")


def test_removal_ends_what_is_forced(now):
    dependency(now)
    forced = overrides.set_override(
        caller="core", callee="oracle", mode="forced_open", reason=REASON, expires_in="1h",
        actor=ADMIN, now=now,
    )  # fmt: skip

    registry.remove_dependency(caller="core", callee="oracle", actor=ADMIN, now=db_now())

    forced.refresh_from_db()
    assert forced.ended_why == "removed"
    assert not Override.objects.filter(ended_at__isnull=True).exists()


def test_removed_dependency_may_be_registered_again(now):
    first = dependency(now)
    registry.remove_dependency(caller="core", callee="oracle", actor=ADMIN, now=db_now())
    later = db_now()

    again = dependency(later)

    assert again.pk == first.pk
    assert (again.removed_at, again.registered_at, again.version) == (None, later, 3)


@pytest.mark.parametrize("caller", ["Core", "a b", "", "a" * 61, "core\n"])
def test_name_that_is_no_slug_is_refused(now, caller):
    with pytest.raises(InvalidInput) as caught:
        registry.put_dependency(caller=caller, callee="oracle", fields={}, actor=ADMIN, now=now)

    assert list(caught.value.errors) == ["caller"]


def test_viewer_may_not_register(now):
    with pytest.raises(Forbidden):
        registry.put_dependency(caller="core", callee="oracle", fields={}, actor=VIEWER, now=now)


TOKEN = replace(OPERATOR, type="token", name="ci", token_id=1)


@pytest.mark.parametrize("actor", [OPERATOR, TOKEN])
def test_policies_are_the_admins(now, actor):
    dependency(now, timeout_ms=1)

    with pytest.raises(Forbidden, match="can change the registry"):
        registry.put_dependency(caller="core", callee="oracle", fields={}, actor=actor, now=now)
    with pytest.raises(Forbidden, match="can change the registry"):
        registry.remove_dependency(caller="core", callee="oracle", actor=actor, now=now)
    with pytest.raises(Forbidden, match="can change the registry"):
        catalog.put_service(slug="oracle", fields={}, actor=actor, now=now)

    assert registry.find_dependency("core", "oracle").version == 1


@pytest.mark.parametrize("actor", [replace(TOKEN, role=Role.ADMIN), system_actor("shell:root")])
def test_token_of_an_admin_and_the_house_may_register(now, actor):
    put = registry.put_dependency(caller="core", callee="oracle", fields={}, actor=actor, now=now)

    assert put.version == 1


def test_wrong_policy_and_wrong_outage_policy_are_told_together(now):
    with pytest.raises(InvalidInput) as caught:
        dependency(now, breaker={"failure_rate": 3}, on_outage={"action": "trip"})

    assert caught.value.errors.keys() == {"breaker.failure_rate", "on_outage.switch"}
    assert not Dependency.objects.exists()


def many(now, count, **fields):
    row = Dependency.objects.create(
        caller="c0", callee="x", registered_at=now, changed_at=now, **fields
    )
    multiply(row, count - 1, caller="'c' || i")


def test_no_room_for_more_than_may_be_registered(now):
    many(now, names.MAX_REGISTERED, document={"timeout_ms": 1})

    with pytest.raises(Conflict):
        dependency(now)


def test_what_is_only_reported_takes_no_room_of_what_is_registered(now):
    many(now, names.MAX_REGISTERED)

    assert dependency(now).version == 1


def test_outage_policy_alone_is_a_change(now):
    dependency(now)

    row = dependency(db_now(), on_outage={"action": "fallback"})

    assert row.version == 2
    assert row.on_outage["action"] == "fallback"


@pytest.mark.django_db(transaction=True)
def test_versions_are_in_commit_order_when_many_register_at_once():
    def register(n):
        return lambda: dependency(db_now(), f"core->s{n}").version

    outcomes = at_once(*[register(n) for n in range(8)])

    assert sorted(outcomes) == list(range(1, 9))
    assert Registry.objects.get().version == 8


@pytest.mark.django_db(transaction=True)
def test_whoever_registers_waits_for_the_registry_row():
    with transaction.atomic():
        publication.lock()
        with connection.cursor() as cursor:
            cursor.execute("SELECT version FROM breakers_registry")
        outcomes = at_once(_impatient)

    assert outcomes == ["waited"]
    assert not Dependency.objects.exists()


def _impatient():
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '200ms'")
    try:
        dependency(db_now())
    except Exception as error:
        return "waited" if "lock timeout" in str(error) else str(error)
    return "did not wait"


INTO_STATES = """
    INSERT INTO breakers_breakerstate
        (dependency_id, instance, boot, state, mode, calls, changed_at)
    SELECT id, 'core/a1', gen_random_uuid(), 'closed', 'normal', 0, now()
    FROM breakers_dependency
"""
DISCOVERED = """
    INSERT INTO breakers_dependency (caller, callee, protocol, criticality, mode, owner,
        runbook_url, notes, managed_by, document, on_outage, version, registered_at, changed_at)
    VALUES ('core', 'oracle', '', 'medium', 'sync', '', '', '', 'caller', '{}', '{}', 0,
        now(), now())
    ON CONFLICT DO NOTHING
"""


def _impatiently(statement):
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '200ms'")
        try:
            cursor.execute(statement)
        except OperationalError as error:
            return str(error)
    return "did not wait"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("change", ["put", "remove", "override"])
def test_reports_do_not_wait_for_whoever_changes_a_policy(change):
    dependency(db_now())
    arguments = {"caller": "core", "callee": "oracle", "actor": ADMIN, "now": db_now()}

    with transaction.atomic():
        if change == "put":
            registry.put_dependency(**arguments, fields={"timeout_ms": 5})
        elif change == "remove":
            registry.remove_dependency(**arguments)
        else:
            overrides.set_override(**arguments, mode="forced_open", reason=REASON, expires_in="1h")
        outcomes = at_once(lambda: _impatiently(INTO_STATES))

    assert outcomes == ["did not wait"]


@pytest.mark.django_db(transaction=True)
def test_dependency_that_is_discovered_meanwhile_is_registered_all_the_same():
    """Once somebody has looked and found none, a report makes it."""
    made = []

    def discover_first(execute, sql, params, many, context):
        if sql.startswith("INSERT INTO") and "breakers_dependency" in sql and not made:
            made.append(at_once(lambda: _impatiently(DISCOVERED)))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(discover_first):
        row = dependency(db_now())

    assert made == [["did not wait"]]
    assert Dependency.objects.get() == row
    assert row.document["timeout_ms"] == 60_000
