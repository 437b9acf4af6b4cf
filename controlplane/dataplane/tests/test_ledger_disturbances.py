"""The ledger when its database freezes, goes away and comes back."""

import asyncio
import time

import pytest

from controlplane.core.errors import Unavailable
from controlplane.core.models import Instance
from controlplane.dataplane.ingest.instance_ledger import InstanceLedger, Timing
from controlplane.dataplane.ingest.pending_reports import MAX_REPORTS
from controlplane.dataplane.tests.conftest import Following
from controlplane.dataplane.tests.ledgers import (
    A_BATCH,
    BOOT,
    COPY,
    NOW,
    Clock,
    acks,
    applies,
    hear,
    report,
    row,
    writing,
)
from controlplane.dataplane.tests.lines import wait_until
from controlplane.dataplane.tests.served import EPOCH

pytestmark = pytest.mark.usefixtures("published")

QUICK = Timing(batch=0.05, max_pause=0.1, write=0.4, report=0.5)
BACK = 12.0
"""Seconds until a ledger has certainly reconnected.

A frozen write is given up after `Timing.write`, and the next attempt may freeze as well.
"""


def send(idle: Following, ledger: InstanceLedger, seq: int = 1, **more: object) -> bool:
    return idle.loop.run(ledger.report(report(seq, **more), COPY))


def test_notes_of_a_time_without_database_are_written_when_it_is_back(idle: Following) -> None:
    clock = Clock()
    ledger = InstanceLedger(clock.wall, timing=QUICK)
    with writing(idle, ledger):
        hear(idle, ledger, "core/a1", "17")
        wait_until(lambda: applies("core/a1", 17), A_BATCH)
        idle.database.cut()
        for version in ("18", "19"):
            clock.later(1)
            hear(idle, ledger, "core/a1", version)
            time.sleep(0.2)  # Time for a batch.
        idle.database.mend()
        wait_until(lambda: applies("core/a1", 19), BACK)

    assert sorted(acks()) == [17, 18, 19]
    assert (acks()[18] - NOW).total_seconds() == 1


def test_notes_of_a_frozen_database_are_written_when_it_thaws(idle: Following) -> None:
    ledger = InstanceLedger(Clock().wall, timing=QUICK)
    with writing(idle, ledger):
        hear(idle, ledger, "core/a1", "17")
        wait_until(lambda: applies("core/a1", 17), A_BATCH)
        idle.database.freeze()
        hear(idle, ledger, "core/a2", "17")
        time.sleep(QUICK.write + 0.3)
        idle.database.thaw()
        wait_until(lambda: applies("core/a2", 17), BACK)


def test_a_report_is_refused_in_time_while_the_database_is_frozen(idle: Following) -> None:
    ledger = InstanceLedger(Clock().wall, timing=QUICK)
    with writing(idle, ledger):
        assert send(idle, ledger, 1) is False
        idle.database.freeze()
        began = time.monotonic()
        with pytest.raises(Unavailable):
            send(idle, ledger, 2)
        assert time.monotonic() - began < QUICK.report + 0.5
        idle.database.thaw()

        def taken_in() -> bool:
            try:
                send(idle, ledger, 3)
            except Unavailable:
                time.sleep(0.1)
                return False
            return True

        wait_until(taken_in, BACK)

    assert row().seq == 3


def test_reports_are_refused_at_once_while_the_database_is_known_to_be_away(
    idle: Following,
) -> None:
    ledger = InstanceLedger(Clock().wall)
    with writing(idle, ledger):
        idle.database.cut()
        with pytest.raises(Unavailable):
            send(idle, ledger, 1)
        began = time.monotonic()
        with pytest.raises(Unavailable):
            send(idle, ledger, 2)
        assert time.monotonic() - began < 0.5
        idle.database.mend()


def test_one_cut_connection_costs_a_report_nothing_but_time(idle: Following) -> None:
    ledger = InstanceLedger(Clock().wall)
    with writing(idle, ledger):
        assert send(idle, ledger, 1) is False
        idle.database.cut()
        idle.database.mend()

        assert send(idle, ledger, 2) is False

    assert row().seq == 2


def test_a_ledger_that_does_not_run_refuses_reports_in_time(idle: Following) -> None:
    ledger = InstanceLedger(Clock().wall, timing=QUICK)
    began = time.monotonic()

    with pytest.raises(Unavailable):
        send(idle, ledger)

    assert time.monotonic() - began < QUICK.report + 0.5


def test_a_report_is_stored_or_refused_within_five_seconds_by_default() -> None:
    assert Timing().write < Timing().report <= 5


def test_a_ledger_that_ends_refuses_the_reports_that_wait(idle: Following) -> None:
    ledger = InstanceLedger(Clock().wall)
    idle.database.freeze()
    with writing(idle, ledger):
        waiting = asyncio.run_coroutine_threadsafe(ledger.report(report(1), COPY), idle.loop.loop)
        time.sleep(0.3)

    with pytest.raises(Unavailable):
        waiting.result(timeout=1)


def test_no_more_reports_wait_than_there_is_room_for(idle: Following) -> None:
    ledger = InstanceLedger(Clock().wall)

    async def refused_at_once() -> int:
        sent = [asyncio.create_task(ledger.report(report(n))) for n in range(MAX_REPORTS + 50)]
        await asyncio.sleep(0.5)
        count = sum(task.done() for task in sent)
        for task in sent:
            task.cancel()
        await asyncio.gather(*sent, return_exceptions=True)
        return count

    assert idle.loop.run(refused_at_once()) == 50


def test_the_same_report_by_two_ledgers_at_once_is_taken_in_exactly_once(idle: Following) -> None:
    ledgers = [InstanceLedger(Clock().wall) for _ in range(2)]
    with writing(idle, *ledgers):
        for seq in range(1, 11):

            async def both(seq: int = seq) -> list[bool]:
                sent = report(seq, checks={"segment:a": (seq * 10, seq)})
                return await asyncio.gather(
                    *(ledger.report(sent, COPY) for ledger in ledgers for _ in range(2))
                )

            assert sorted(idle.loop.run(both())) == [False, True, True, True]

    assert row().checks["segment:a"]["allowed"] == 100
    assert row().checks["segment:a"]["blocked"] == 10


def test_reports_of_many_instances_crosswise_by_two_ledgers_all_arrive(idle: Following) -> None:
    ledgers = [InstanceLedger(Clock().wall) for _ in range(2)]

    async def all_sent() -> list[bool]:
        return await asyncio.gather(
            *(
                ledgers[(number + seq) % 2].report(
                    report(seq, instance=f"i{number}", checks={"segment:a": (seq, 0)}), COPY
                )
                for seq in (1, 2, 3)
                for number in (range(200) if seq % 2 else reversed(range(200)))
            )
        )

    with writing(idle, *ledgers):
        duplicates = idle.loop.run(all_sent())

    assert not any(duplicates)
    found = list(Instance.objects.all())
    assert len(found) == 200
    assert {one.checks["segment:a"]["allowed"] for one in found} == {3}
    assert {one.boot for one in found} == {BOOT}


def test_a_report_is_an_acknowledgement_of_the_epoch_served(idle: Following) -> None:
    clock = Clock()
    ledger = InstanceLedger(clock.wall)
    with writing(idle, ledger):
        send(idle, ledger, 1, applied_version=17)
        clock.later(5)
        send(idle, ledger, 2, applied_version=17)
        send(idle, ledger, 3, applied_version=19)

    assert acks() == {17: NOW, 19: clock.now}
    found = row()
    assert (found.applied_epoch, found.applied_version) == (EPOCH, 19)
    assert found.heard_at == found.reported_at == clock.now
