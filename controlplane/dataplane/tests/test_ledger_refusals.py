"""An instance's bad report, or a row that the database refuses, affects no other instance."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import psycopg
import pytest
from django.db import connection

from controlplane.core.errors import Unavailable
from controlplane.core.models import Acknowledgement, Instance
from controlplane.dataplane.ingest import instance_sql
from controlplane.dataplane.ingest.instance_ledger import InstanceLedger, Timing
from controlplane.dataplane.ingest.instance_rows import InstanceReport
from controlplane.dataplane.ingest.instance_sql import Presence
from controlplane.dataplane.ingest.pending_reports import UnstorableReport
from controlplane.dataplane.postgres import database
from controlplane.dataplane.tests.conftest import Following
from controlplane.dataplane.tests.ledgers import (
    A_BATCH,
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


def execute(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


@contextmanager
def refusing(name: str) -> Iterator[None]:
    """Make the database refuse rows of the instance `name`."""
    execute(f"ALTER TABLE core_instance ADD CONSTRAINT refused CHECK (id <> '{name}')")
    try:
        yield
    finally:
        execute("ALTER TABLE core_instance DROP CONSTRAINT refused")


def send_all(idle: Following, ledger: InstanceLedger, *reports: InstanceReport) -> list[object]:
    """Return each outcome: True for a duplicate, or an error."""

    async def sent() -> list[object]:
        return await asyncio.gather(
            *(ledger.report(one, COPY) for one in reports), return_exceptions=True
        )

    return idle.loop.run(sent())


def test_a_version_said_twice_in_one_batch_is_acknowledged_when_it_was_first(
    idle: Following,
) -> None:
    clock = Clock()
    ledger = InstanceLedger(clock.wall)
    reports = [report(seq, applied_version=version) for seq, version in ((1, 17), (2, 18), (3, 17))]
    others = [report(1, instance=f"b{number}", boot=uuid4()) for number in range(5)]

    async def sent() -> list[bool]:
        waiting = []
        for one in [*reports, *others]:
            waiting.append(asyncio.create_task(ledger.report(one, COPY)))
            await asyncio.sleep(0)
            clock.later(1)
        return await asyncio.gather(*waiting)

    with writing(idle, ledger):
        assert idle.loop.run(sent()) == [False] * 8

    assert acks() == {17: NOW, 18: NOW + timedelta(seconds=1)}
    assert row().applied_version == 17


def test_a_report_that_cannot_be_written_is_refused_and_those_around_it_are_not(
    idle: Following, caplog: pytest.LogCaptureFixture
) -> None:
    ledger = InstanceLedger(Clock().wall)
    names = ["a", "b", "bad", "c", "d"]
    with refusing("core/bad"), writing(idle, ledger):
        first = send_all(idle, ledger, *(report(1, instance=name) for name in names))
        second = send_all(idle, ledger, report(2, instance="a"))

    assert [type(one) for one in first] == [bool, bool, UnstorableReport, bool, bool]
    assert second == [False]
    assert caplog.text.count("ledger.report_refused") == 1
    assert "ledger.database_lost" not in caplog.text


def test_a_report_that_cannot_be_merged_is_refused_and_those_around_it_are_not(
    idle: Following, caplog: pytest.LogCaptureFixture
) -> None:
    ledger = InstanceLedger(Clock().wall)
    odd = report(1, instance="odd", checks={"segment:a": ("many", 0)})
    with writing(idle, ledger):
        found = send_all(idle, ledger, report(1, instance="a"), odd, report(1, instance="b"))

    assert [type(one) for one in found] == [bool, UnstorableReport, bool]
    assert caplog.text.count("ledger.report_refused") == 1
    assert "ledger.database_lost" not in caplog.text


def test_a_report_from_the_year_1_costs_nobody_anything(idle: Following) -> None:
    ledger = InstanceLedger(Clock().wall)
    first, last = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    odd = report(1, instance="odd", started_at=first, sent_at=last, sli={"core": (1, 1)})
    with writing(idle, ledger):
        assert send_all(idle, ledger, report(1), odd, report(2)) == [False, False, False]


def test_a_report_whose_row_is_locked_is_refused_and_those_around_it_are_not(
    idle: Following,
) -> None:
    ledger = InstanceLedger(Clock().wall)
    with writing(idle, ledger):
        send_all(idle, ledger, report(1, instance="held"))
        with psycopg.connect(idle.config.database_url) as holder:
            holder.execute("SELECT FROM core_instance WHERE id = 'core/held' FOR UPDATE")
            found = send_all(
                idle, ledger, *(report(2, instance=name) for name in ("a", "held", "b"))
            )

    assert [type(one) for one in found] == [bool, Unavailable, bool]


def test_calls_that_cannot_be_written_keep_no_report_from_it(idle: Following) -> None:
    ledger = InstanceLedger(Clock().wall)

    async def ask() -> None:
        ledger.check_counter.record_check("core/bad", ["segment:a"], None)

    idle.loop.run(ask())
    with refusing("core/bad"), writing(idle, ledger):
        assert send_all(idle, ledger, report(1), report(2)) == [False, False]


def test_a_note_that_cannot_be_written_is_left_out_and_all_others_are_written(
    idle: Following,
) -> None:
    ledger = InstanceLedger(Clock().wall)
    for number in range(30):
        hear(idle, ledger, f"core/{number}", "17")
    with refusing("core/13"), writing(idle, ledger):
        wait_until(lambda: Instance.objects.filter(applied_version=17).count() == 29, A_BATCH)
        wait_until(lambda: Acknowledgement.objects.filter(version=17).count() >= 29, A_BATCH)
        assert send_all(idle, ledger, report(1)) == [False]


def test_what_was_never_published_is_not_acknowledged(idle: Following) -> None:
    clock = Clock()
    ledger = InstanceLedger(clock.wall)
    with writing(idle, ledger):
        hear(idle, ledger, "core/a1", f"{EPOCH}.999999999")
        hear(idle, ledger, "core/a1", f"{uuid4()}.17")
        clock.later(1)
        send_all(idle, ledger, report(1, instance="a2", applied_version=100))
        hear(idle, ledger, "core/a1", f"{EPOCH}.99")
        wait_until(lambda: applies("core/a1", 99), A_BATCH)
        wait_until(lambda: 99 in acks(), A_BATCH)

    assert list(Acknowledgement.objects.values_list("instance", "version")) == [("core/a1", 99)]


def test_a_full_table_takes_only_known_instances_and_those_that_report(
    idle: Following, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    ledger = InstanceLedger(clock.wall, most=3, timing=Timing(counts=0.1))
    with writing(idle, ledger):
        for name in ("core/a1", "core/a2", "core/a3"):
            hear(idle, ledger, name, "17")
        wait_until(lambda: Instance.objects.count() == 3, A_BATCH)
        ledger._quota._counted_at = float("-inf")  # Rows are counted again.
        clock.later(1)

        async def flood() -> None:
            for number in range(5000):
                ledger.presence_buffer.record_presence(b"flood/%d" % number, b"18", COPY)
                ledger.check_counter.record_check(f"flood/{number}", ["segment:a"], None)
            ledger.presence_buffer.record_presence(b"core/a2", b"19", COPY)

        idle.loop.run(flood())
        wait_until(lambda: applies("core/a2", 19), A_BATCH)
        send_all(idle, ledger, report(1, instance="new"))
        wait_until(lambda: not ledger.check_counter and not ledger._counts, A_BATCH)
        send_all(idle, ledger, report(2, instance="new"))  # Written after the others.

    assert set(Instance.objects.values_list("id", flat=True)) == {
        "core/a1", "core/a2", "core/a3", "core/new"
    }  # fmt: skip
    assert Acknowledgement.objects.filter(instance__startswith="flood").count() == 0
    assert caplog.text.count("ledger.instances_full") == 1


def test_room_that_was_made_is_taken(idle: Following, caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    ledger = InstanceLedger(clock.wall, most=1)
    with writing(idle, ledger):
        hear(idle, ledger, "core/a1", "17")
        wait_until(lambda: applies("core/a1", 17), A_BATCH)
        hear(idle, ledger, "core/a2", "17")
        wait_until(lambda: "ledger.instances_full" in caplog.text, A_BATCH)
        assert row("core/a2") is None
        Instance.objects.all().delete()
        ledger._quota._counted_at = float("-inf")  # Rows are counted again.
        hear(idle, ledger, "core/a2", "18")
        wait_until(lambda: applies("core/a2", 18), A_BATCH)


def test_two_processes_that_hold_old_rows_and_make_new_ones_never_wait_in_a_circle(
    idle: Following,
) -> None:
    old = [f"dl/a{number:04}" for number in range(300)]

    async def crosswise() -> list[object]:
        one, other = [await database.connect(idle.config) for _ in range(2)]
        await instance_sql.write_presence(one, notes(old), [])
        found: list[object] = []
        for turn in range(25):
            both = [*old, *(f"dl/b{turn:02}x{number:04}" for number in range(100))]

            async def lock_rows(names: list[str] = both) -> None:
                async with other.transaction():
                    await instance_sql.lock_rows(other, dict.fromkeys(names, "dl"))

            presence = instance_sql.write_presence(one, notes(sorted(both)), [])
            found += await asyncio.gather(presence, lock_rows(), return_exceptions=True)
        for each in (one, other):
            await each.close()
        return [each for each in found if isinstance(each, Exception)]

    def notes(names: list[str]) -> list[Presence]:
        return [Presence(name, "dl", NOW, None, None, None) for name in names]

    assert idle.loop.run(crosswise()) == []


def test_an_instance_that_forgets_says_nothing_unless_its_reports_do(idle: Following) -> None:
    clock = Clock()
    first, second = InstanceLedger(clock.wall), InstanceLedger(clock.wall)

    def forget(name: str) -> None:
        async def hear_all() -> None:
            second.presence_buffer.record_presence(name.encode(), None, COPY, forgets=True)

        idle.loop.run(hear_all())

    with writing(idle, first, second):
        hear(idle, first, "core/a1", "17")
        send_all(idle, first, report(1, instance="reports", applied_version=17))
        wait_until(lambda: applies("core/a1", 17), A_BATCH)
        clock.later(1)
        forget("core/a1")
        forget("core/reports")
        wait_until(lambda: row("core/reports").heard_at == clock.now, A_BATCH)
        wait_until(lambda: row().heard_at == clock.now, A_BATCH)

    assert (row().applied_epoch, row().applied_version, row().applied_at) == (None, None, clock.now)
    assert row("core/reports").applied_version == 17
