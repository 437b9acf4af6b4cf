"""Registering dependencies: what is numbered, what is told, and what changes nothing."""

import pytest
from django.db import connection, transaction

from breakers import publication
from breakers.models import Dependency, Override, Registry
from breakers.services import overrides, registry
from breakers.tests.registered import (
    OPERATOR,
    REASON,
    VIEWER,
    dependency,
    discovered,
)
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict, Forbidden, InvalidInput, NotFound
from controlplane.core.http.tests.callers import at_once

pytestmark = pytest.mark.django_db


@pytest.fixture
def now():
    return db_now()


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
        "olga",
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
    assert not found.is_discovered


def test_removed_dependency_is_news_and_hides(now):
    dependency(now)

    gone = registry.remove(caller="core", callee="oracle", actor=OPERATOR, now=db_now())

    assert gone.version == Registry.objects.get().version == 2
    assert gone.document == {}
    assert last_row().action == "dependency.removed"
    with pytest.raises(NotFound):
        registry.find("core", "oracle")


def test_removal_ends_what_is_forced(now):
    dependency(now)
    forced = overrides.put(
        caller="core", callee="oracle", mode="forced_open", reason=REASON, expires_in="1h",
        actor=OPERATOR, now=now,
    )  # fmt: skip

    registry.remove(caller="core", callee="oracle", actor=OPERATOR, now=db_now())

    forced.refresh_from_db()
    assert forced.ended_why == "removed"
    assert not Override.objects.filter(ended_at__isnull=True).exists()


def test_removed_dependency_may_be_registered_again(now):
    first = dependency(now)
    registry.remove(caller="core", callee="oracle", actor=OPERATOR, now=db_now())
    later = db_now()

    again = dependency(later)

    assert again.pk == first.pk
    assert (again.removed_at, again.registered_at, again.version) == (None, later, 3)


@pytest.mark.parametrize("caller", ["Core", "a b", "", "a" * 61, "core\n"])
def test_name_that_is_no_slug_is_refused(now, caller):
    with pytest.raises(InvalidInput) as caught:
        registry.put(caller=caller, callee="oracle", fields={}, actor=OPERATOR, now=now)

    assert list(caught.value.errors) == ["caller"]


def test_viewer_may_not_register(now):
    with pytest.raises(Forbidden):
        registry.put(caller="core", callee="oracle", fields={}, actor=VIEWER, now=now)


def test_wrong_policy_and_wrong_outage_policy_are_told_together(now):
    with pytest.raises(InvalidInput) as caught:
        dependency(now, breaker={"failure_rate": 3}, on_outage={"action": "trip"})

    assert caught.value.errors.keys() == {"breaker.failure_rate", "on_outage.switch"}
    assert not Dependency.objects.exists()


def test_no_room_for_more_than_there_may_be(now):
    Dependency.objects.bulk_create(
        Dependency(caller=f"c{n}", callee="x", registered_at=now, changed_at=now)
        for n in range(registry.MOST_DEPENDENCIES)
    )

    with pytest.raises(Conflict):
        dependency(now)


def test_outage_policy_alone_is_a_change(now):
    dependency(now)

    found = dependency(db_now(), on_outage={"action": "fallback"})

    assert found.version == 2
    assert found.on_outage["action"] == "fallback"


@pytest.mark.django_db(transaction=True)
def test_versions_are_in_commit_order_when_many_register_at_once():
    def register(n):
        return lambda: dependency(db_now(), f"core->s{n}").version

    found = at_once(*[register(n) for n in range(8)])

    assert sorted(found) == list(range(1, 9))
    assert Registry.objects.get().version == 8


@pytest.mark.django_db(transaction=True)
def test_whoever_registers_waits_for_the_registry_row():
    with transaction.atomic():
        publication.lock()
        with connection.cursor() as cursor:
            cursor.execute("SELECT version FROM breakers_registry")
        found = at_once(_impatient)

    assert found == ["waited"]
    assert not Dependency.objects.exists()


def _impatient():
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '200ms'")
    try:
        dependency(db_now())
    except Exception as error:
        return "waited" if "lock timeout" in str(error) else str(error)
    return "did not wait"
