"""Reported breakers become rows: each change is written once, and nothing else."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from django.db import connection

from breakers.models import BreakerState, Dependency, Transition
from controlplane.core.models import Instance
from controlplane.dataplane.tests.breaker_reports import (
    NEXT_BOOT,
    OPENED,
    SINCE,
    Reporting,
    at_work,
    breaker,
    make_report,
)
from controlplane.dataplane.tests.conftest import Following
from controlplane.dataplane.tests.ledgers import BOOT, COPY, NOW

__all__ = ["at_work"]
pytestmark = pytest.mark.usefixtures("published")


def state(dependency: str = "oracle", instance: str = "core/a1") -> BreakerState:
    return BreakerState.objects.get(dependency__callee=dependency, instance=instance)


def writes() -> int:
    """Return the rows written to the instance and breaker tables, by PostgreSQL's statistics."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_force_next_flush()")
        cursor.execute(
            "SELECT sum(n_tup_ins + n_tup_upd + n_tup_del) FROM pg_stat_user_tables"
            " WHERE relname LIKE 'breakers%' OR relname LIKE 'core%'"
        )
        return int(cursor.fetchone()[0])


def test_a_report_of_an_unknown_dependency_makes_its_row_and_its_state(at_work: Reporting) -> None:
    at_work.report(
        make_report(
            breaker(
                state="open",
                since=SINCE,
                failure_rate=0.6,
                slow_rate=0,
                calls=20,
                counters={"failure": 12, "success": 8},
                transitions=[OPENED],
            ),
            bulkheads=[{"name": "llm", "in_flight": 3, "limit": 50}],
        )
    )

    dependency = Dependency.objects.get()
    assert (dependency.name, dependency.version, dependency.document) == ("core->oracle", 0, {})
    found = state()
    assert (found.boot, found.state, found.mode, found.calls) == (BOOT, "open", "normal", 20)
    assert (found.failure_rate, found.slow_rate, found.changed_at) == (0.6, 0.0, NOW)
    assert found.since == datetime(2026, 11, 21, 11, 58, tzinfo=UTC)
    moved = Transition.objects.get()
    assert (moved.n, moved.from_state, moved.to_state, moved.cause) == (
        1,
        "closed",
        "open",
        OPENED["cause"],
    )
    assert (moved.instance, moved.boot, moved.received_at) == ("core/a1", BOOT, NOW)
    kept = Instance.objects.get(id="core/a1").resilience
    assert kept["breakers"]["core->oracle"] == {
        "state": "open",
        "mode": "normal",
        "since": "2026-11-21T11:58:00.000000Z",
        "failure_rate": 0.6,
        "slow_rate": 0.0,
        "calls": 20,
        "counters": {
            "success": 8, "failure": 12, "timeout": 0, "slow": 0,
            "rejected": 0, "fallback": 0, "retry": 0,
        },
    }  # fmt: skip
    assert kept["bulkheads"]["llm"] == {
        "in_flight": 3, "limit": 50, "queued": 0, "queue_limit": 0, "rejected": 0,
    }  # fmt: skip


def test_a_registered_dependency_is_left_as_it_is(at_work: Reporting) -> None:
    registered = Dependency.objects.create(
        caller="core", callee="oracle", version=7, registered_at=NOW, changed_at=NOW, notes="ours"
    )

    at_work.report(make_report(breaker()))

    assert state().dependency_id == registered.pk
    assert Dependency.objects.get().notes == "ours"


@pytest.mark.slow
def test_an_unchanged_heartbeat_writes_one_row(at_work: Reporting) -> None:
    both = [breaker(f"core->s{number}", since=SINCE, failure_rate=0.1) for number in range(20)]
    for seq in range(1, 70):  # Fill the memory of the boot's reports.
        at_work.report(make_report(*both, seq=seq), after=0.1)
    time.sleep(1.1)  # PostgreSQL updates statistics after commit, at most once a second.
    at_work.report(make_report(*both, seq=70), after=0.1)
    time.sleep(0.1)
    before = writes()

    for seq in range(71, 81):
        at_work.report(make_report(*both, seq=seq), after=0.1)
    time.sleep(1.1)
    at_work.report(make_report(*both, seq=81), after=0.1)
    time.sleep(0.1)

    assert writes() == before + 11
    assert Instance.objects.get().seq == 81


def test_only_the_breaker_that_changed_is_written_anew(at_work: Reporting) -> None:
    at_work.report(make_report(breaker(), breaker("core->redis", failure_rate=0.2)))

    at_work.report(
        make_report(breaker(state="open"), breaker("core->redis", failure_rate=0.2001), seq=2),
        after=5,
    )

    assert state().changed_at == NOW + timedelta(seconds=5)
    assert state("redis").changed_at == NOW


def test_a_rate_alone_is_written_when_it_shows(at_work: Reporting) -> None:
    at_work.report(make_report(breaker(failure_rate=0.2)))

    at_work.report(make_report(breaker(failure_rate=0.3), seq=2), after=5)

    assert (state().failure_rate, state().changed_at) == (0.3, NOW + timedelta(seconds=5))


def test_an_older_report_leaves_the_state_alone_and_its_transitions_are_kept(
    at_work: Reporting,
) -> None:
    at_work.report(make_report(breaker(state="open"), seq=5))

    at_work.report(make_report(breaker(transitions=[OPENED]), seq=4), after=1)

    assert state().state == "open"
    assert Transition.objects.get().n == 1


def test_a_transition_told_in_many_reports_is_kept_once(at_work: Reporting) -> None:
    one = make_report(breaker(state="open", transitions=[OPENED, OPENED]))
    assert at_work.report(one) is False
    assert at_work.report(one) is True
    again = {**OPENED, "cause": "another text", "to": "half_open"}
    at_work.report(make_report(breaker(state="open", transitions=[again]), seq=2))
    at_work.flushed()

    assert Transition.objects.get().cause == OPENED["cause"]
    assert Dependency.objects.get().trips_total == 1


def test_an_opening_by_an_override_is_kept_and_is_no_trip(at_work: Reporting) -> None:
    forced = {**OPENED, "cause": "override forced_open"}

    at_work.report(make_report(breaker(state="open", mode="forced_open", transitions=[forced])))
    at_work.flushed()

    assert Transition.objects.get().cause == "override forced_open"
    assert Dependency.objects.get().trips_total == 0


def test_transitions_of_an_older_boot_are_kept_and_change_nothing_else(at_work: Reporting) -> None:
    at_work.report(make_report(breaker()))
    older = make_report(
        breaker(state="open", transitions=[OPENED]),
        boot=str(NEXT_BOOT),
        started_at="2026-11-21T11:00:00Z",
    )

    at_work.report(older, after=1)

    assert (state().state, state().boot) == ("closed", BOOT)
    assert Transition.objects.get().boot == NEXT_BOOT


def test_a_clock_that_is_ahead_moves_no_transition_into_the_future(at_work: Reporting) -> None:
    at_work.report(make_report(breaker(transitions=[{**OPENED, "at": "2026-11-22T00:00:00Z"}])))

    assert Transition.objects.get().at == NOW


def test_a_new_boot_begins_with_what_it_says_itself(at_work: Reporting) -> None:
    at_work.report(make_report(breaker(state="open"), breaker("core->redis")))

    new = make_report(breaker(), boot=str(NEXT_BOOT), started_at="2026-11-21T11:59:59Z")
    at_work.report(new, after=2)

    assert (state().boot, state().state) == (NEXT_BOOT, "closed")
    assert BreakerState.objects.count() == 1
    assert set(Instance.objects.get().resilience["breakers"]) == {"core->oracle"}


def test_without_redis_reports_are_taken_in_as_soon(at_work: Reporting, idle: Following) -> None:
    at_work.report(make_report(breaker()))
    idle.redis.freeze()

    began = time.monotonic()
    for seq in range(2, 12):
        at_work.report(make_report(breaker(state=["open", "closed"][seq % 2]), seq=seq))

    assert time.monotonic() - began < 2
    assert state().state == "closed"


def test_a_single_report_does_not_wait_for_a_batch(at_work: Reporting) -> None:
    at_work.report(make_report(breaker()))
    took = []
    for seq in range(2, 12):
        time.sleep(0.03)
        began = time.monotonic()
        at_work.report(make_report(breaker(), seq=seq))
        took.append(time.monotonic() - began)

    assert sorted(took)[5] < 0.1, took


def test_many_instances_at_once_are_written_whole(at_work: Reporting, idle: Following) -> None:
    breakers = [breaker(f"core->s{number}", transitions=[OPENED]) for number in range(20)]
    reports = [make_report(*breakers, instance=f"i{n}", boot=str(uuid4())) for n in range(100)]

    async def sent() -> list[bool]:
        return await asyncio.gather(*(at_work.ledger.report(one, COPY) for one in reports))

    assert idle.loop.run(sent()) == [False] * 100
    assert BreakerState.objects.count() == Transition.objects.count() == 2000
    assert Dependency.objects.count() == 20
