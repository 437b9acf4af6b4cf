"""Migrations of sample entries and first steps, on the data of an installation in use."""

from collections.abc import Iterator

import pytest
from django.db import connection, transaction
from django.db.migrations.executor import MigrationExecutor

from breakers.services import registry
from breakers.tests.registered import breaker, dependency, instance
from controlplane.core import provision
from controlplane.core.actors import system_actor
from controlplane.core.audit import services as audit
from controlplane.core.clock import db_now
from controlplane.core.configuration import samples
from controlplane.core.configuration.models import SampleEntry
from controlplane.core.configuration.services import load_shipped
from controlplane.core.first_steps import services as first_steps
from slo.models import Sli

pytestmark = pytest.mark.django_db(transaction=True)
SHELL = system_actor("shell:ada")
RELEASE_BEFORE = [("core", "0027_favorite")]


def upgrade() -> None:
    executor = MigrationExecutor(connection)
    executor.migrate(executor.loader.graph.leaf_nodes())


@pytest.fixture
def shipped() -> None:
    load_shipped(actor=provision.ACTOR, now=db_now())


@pytest.fixture
def reported(shipped: None) -> None:
    """A reported breaker; today's model can't write it to the tables of the release before."""
    breaker(registry.find_dependency("core", "oracle"), instance(db_now(), "core/a1"))


@pytest.fixture
def old_release(shipped: None) -> Iterator[None]:
    """Return to the tables of the release before, which had loaded the shipped configuration."""
    MigrationExecutor(connection).migrate(RELEASE_BEFORE)
    yield
    upgrade()


@pytest.mark.usefixtures("reported", "old_release")
def test_upgrade_calls_only_what_is_unused_and_unchanged_a_sample():
    now = db_now()
    edited = registry.find_dependency("core", "vision")
    policy = {**edited.document, "timeout_ms": 1234}
    registry.put_dependency(caller="core", callee="vision", fields=policy, actor=SHELL, now=now)
    registry.remove_dependency(caller="core", callee="weaver", reason="gone", actor=SHELL, now=now)
    dependency(now, "core->weaver", actor=SHELL)
    dependency(now, "checkout->payments", actor=SHELL)
    Sli.objects.filter(slo__name="core-availability").update(first=1, last=2)

    upgrade()

    assert SampleEntry.objects.count() == 61
    assert {item.name: item.kept for item in samples.list_items() if item.kept} == {
        "core->oracle": "its breakers are reported",
        "core->vision": "changed after it was loaded",
        "core->weaver": "changed after it was loaded",
        "core": "its instances report",
        "oracle": "the dependency core->oracle names it",
        "vision": "the dependency core->vision names it",
        "weaver": "the dependency core->weaver names it",
        "core-availability": "it has data",
    }
    assert "checkout->payments" not in {item.name for item in samples.list_items()}


@pytest.mark.usefixtures("old_release")
def test_upgrade_hides_the_first_steps_where_a_switch_was_engaged():
    with transaction.atomic():
        audit.record(actor=SHELL, action="switch.engaged", target="feature:chat", now=db_now())

    upgrade()

    state = first_steps.read_state()
    assert state.is_over
    assert state.hidden_by == "system:upgrade"


@pytest.mark.usefixtures("old_release")
def test_upgrade_shows_the_first_steps_where_nothing_was_engaged():
    upgrade()

    assert not first_steps.read_state().is_over
    assert {item.kept for item in samples.list_items()} == {""}
