"""Unregistered dependencies are created by reports, without delaying other reports."""

import time
from uuid import uuid4

import psycopg
import pytest

from breakers.models import BreakerState, Dependency
from controlplane.core.errors import Unavailable
from controlplane.core.models import Instance
from controlplane.dataplane.ingest.dependency_discovery import DependencyIds
from controlplane.dataplane.tests.breaker_reports import Reporting, at_work, breaker, make_report
from controlplane.dataplane.tests.conftest import Following
from controlplane.dataplane.tests.ledgers import NOW
from controlplane.dataplane.tests.lines import wait_until

__all__ = ["at_work"]
pytestmark = pytest.mark.usefixtures("published")


def state(callee: str) -> BreakerState | None:
    return BreakerState.objects.filter(dependency__callee=callee, instance="core/a1").first()


def test_dependencies_are_made_while_there_is_room_and_the_rest_of_the_report_counts(
    at_work: Reporting, caplog: pytest.LogCaptureFixture
) -> None:
    Dependency.objects.create(
        caller="core", callee="db", document={"timeout_ms": 1}, registered_at=NOW, changed_at=NOW
    )  # Registered dependencies don't count.
    at_work.ledger._breaker_writer.dependencies = DependencyIds(most=3)

    at_work.report(make_report(*(breaker(f"core->s{number}") for number in range(5))))
    assert BreakerState.objects.count() == 3
    at_work.report(make_report(breaker("core->s9"), breaker("core->s0", state="open"), seq=2))

    assert Dependency.objects.filter(document={}).count() == 3
    assert state("s0").state == "open"
    assert Instance.objects.get().seq == 2
    assert caplog.text.count("ledger.dependencies_full") == 1


def test_a_dependency_that_was_deleted_is_made_again_by_the_next_try(at_work: Reporting) -> None:
    at_work.report(make_report(breaker()))
    Dependency.objects.all().delete()

    with pytest.raises(Unavailable):
        at_work.report(make_report(breaker(), instance="a2", boot=str(uuid4())))
    again = make_report(breaker(state="open"), seq=2)
    at_work.report(again, after=1)

    assert Dependency.objects.count() == 1
    assert state("oracle").state == "open"


def test_a_name_that_is_being_registered_holds_up_no_report(
    at_work: Reporting, idle: Following
) -> None:
    at_work.report(make_report(breaker("core->redis")))
    with psycopg.connect(idle.config.database_url) as registering:
        registering.execute(
            "INSERT INTO breakers_dependency (caller, callee, protocol, criticality, mode, owner,"
            " runbook_url, notes, managed_by, document, on_outage, version, registered_at,"
            " changed_at) VALUES ('core', 'oracle', '', 'high', 'sync', '', '', '',"
            " 'caller', '{\"timeout_ms\": 1}', '{}', 1, now(), now())"
        )
        for seq in range(2, 12):
            began = time.monotonic()
            both = breaker("core->redis", state="open"), breaker(state="open")
            assert at_work.report(make_report(*both, seq=seq)) is False
            assert time.monotonic() - began < 0.5
        assert state("redis").state == "open"
        assert state("oracle") is None

    def is_written() -> bool:
        at_work.report(make_report(*both, seq=next_seq()))
        return state("oracle") is not None

    numbers = iter(range(12, 1000))

    def next_seq() -> int:
        return next(numbers)

    wait_until(is_written, 4)  # Written although the breaker has not changed.
    assert (state("oracle").state, Dependency.objects.count()) == ("open", 2)
