"""The time when an instance was first heard is kept, to know who could apply a change."""

from datetime import timedelta

from controlplane.dataplane.ingest.instance_ledger import InstanceLedger
from controlplane.dataplane.tests.conftest import Following
from controlplane.dataplane.tests.lines import wait_until
from controlplane.dataplane.tests.test_ledger import (
    A_BATCH,
    COPY,
    NOW,
    Clock,
    applies,
    hear,
    report,
    row,
    writing,
)


def test_first_word_stands_however_often_it_speaks_and_whoever_writes_it_first(
    idle: Following,
) -> None:
    clock = Clock()
    early, late = InstanceLedger(clock.wall), InstanceLedger(clock.wall)
    hear(idle, early, "core/a1", "17")
    clock.later(1)
    hear(idle, late, "core/a1", "18")
    with writing(idle, late):
        wait_until(lambda: applies("core/a1", 18), A_BATCH)
    assert row().first_heard_at == clock.now
    with writing(idle, early):
        wait_until(lambda: row().first_heard_at == NOW, A_BATCH)
        assert row().heard_at == clock.now
        clock.later(1)
        hear(idle, early, "core/a1", "19")
        wait_until(lambda: applies("core/a1", 19), A_BATCH)

    assert (row().first_heard_at, row().heard_at) == (NOW, clock.now)


def test_report_and_no_check_is_a_first_word(idle: Following) -> None:
    clock = Clock()
    ledger = InstanceLedger(clock.wall)

    async def ask() -> None:
        ledger.check_counter.record_check("core/a1", ["segment:a"], None)

    idle.loop.run(ask())
    with writing(idle, ledger):
        wait_until(lambda: row() is not None, 10)
        assert row().first_heard_at is None
        for seq in (1, 2):
            clock.later(1)
            idle.loop.run(ledger.report(report(seq), COPY))

    assert row().first_heard_at == NOW + timedelta(seconds=1)
