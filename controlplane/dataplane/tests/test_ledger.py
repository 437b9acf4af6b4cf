"""Presence reaches the database in batches, in whatever order several ledgers write."""

import random
import time
from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import connection

from controlplane.core.errors import Unavailable
from controlplane.core.instances import queries
from controlplane.core.models import Acknowledgement, Instance
from controlplane.dataplane.ingest.instance_ledger import InstanceLedger
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
from controlplane.dataplane.tests.served import EPOCH, copy

pytestmark = pytest.mark.usefixtures("published")


def test_an_instance_that_says_what_it_applies_is_written_with_its_acknowledgement(
    idle: Following,
) -> None:
    clock = Clock()
    ledger = InstanceLedger(clock.wall)
    with writing(idle, ledger):
        hear(idle, ledger, "core/a1", f"{EPOCH}.17")
        wait_until(lambda: applies("core/a1", 17), A_BATCH)

    found = row()
    assert (found.service, found.heard_at, found.applied_at) == ("core", NOW, NOW)
    assert found.applied_epoch == EPOCH
    assert acks() == {17: NOW}


def test_a_bare_version_is_of_the_epoch_served_now(idle: Following) -> None:
    other, clock = uuid4(), Clock()
    ledger = InstanceLedger(clock.wall)
    with writing(idle, ledger):
        hear(idle, ledger, "core/a1", "17")
        wait_until(lambda: applies("core/a1", 17), A_BATCH)
        clock.later(1)
        hear(idle, ledger, "core/a1", "18", copy(18, epoch=other))
        wait_until(lambda: row().applied_epoch == other, A_BATCH)


def test_each_step_is_acknowledged_when_it_was_heard_even_within_one_batch(
    idle: Following,
) -> None:
    clock = Clock()
    ledger = InstanceLedger(clock.wall)
    for version in ("17", "18", "20"):
        hear(idle, ledger, "core/a1", version)
        clock.later(0.04)
    with writing(idle, ledger):
        wait_until(lambda: applies("core/a1", 20), A_BATCH)

    assert acks() == {
        17: NOW,
        18: NOW + timedelta(seconds=0.04),
        20: NOW + timedelta(seconds=0.08),
    }


def test_an_instance_that_says_nothing_is_heard_and_keeps_what_it_said(idle: Following) -> None:
    clock = Clock()
    first, second = InstanceLedger(clock.wall), InstanceLedger(clock.wall)
    with writing(idle, first, second):
        hear(idle, first, "core/a1", "17")
        wait_until(lambda: applies("core/a1", 17), A_BATCH)
        clock.later(5)
        hear(idle, second, "core/a1", None)
        wait_until(lambda: row().heard_at == clock.now, A_BATCH)

    assert row().applied_version == 17


def test_what_was_said_counts_although_a_newer_sign_of_life_was_written_first(
    idle: Following,
) -> None:
    clock = Clock()
    early, late = InstanceLedger(clock.wall), InstanceLedger(clock.wall)
    hear(idle, early, "core/a1", "18")
    clock.later(1)
    with writing(idle, late):
        hear(idle, late, "core/a1", None)
        wait_until(lambda: row() is not None, A_BATCH)
    with writing(idle, early):
        wait_until(lambda: applies("core/a1", 18), A_BATCH)

    assert row().heard_at == clock.now
    assert row().applied_at == NOW


def test_an_older_note_written_later_overwrites_nothing(idle: Following) -> None:
    clock = Clock()
    early, late = InstanceLedger(clock.wall), InstanceLedger(clock.wall)
    hear(idle, early, "core/a1", "18")
    clock.later(1)
    hear(idle, late, "core/a1", "17")
    with writing(idle, late):
        wait_until(lambda: applies("core/a1", 17), A_BATCH)
    with writing(idle, early):
        wait_until(lambda: 18 in acks(), A_BATCH)

    assert (row().applied_version, row().heard_at) == (17, clock.now)


def test_of_two_ledgers_acknowledgements_the_earlier_stands_whoever_writes_first(
    idle: Following,
) -> None:
    clock = Clock()
    early, late = InstanceLedger(clock.wall), InstanceLedger(clock.wall)
    hear(idle, early, "core/a1", "18")
    clock.later(1)
    hear(idle, late, "core/a1", "18")
    with writing(idle, late):
        wait_until(lambda: 18 in acks(), A_BATCH)
    with writing(idle, early):
        wait_until(lambda: acks() == {18: NOW}, A_BATCH)


def test_two_ledgers_writing_the_same_instances_crosswise_lose_nothing(idle: Following) -> None:
    clock, draw = Clock(), random.Random(3)
    ledgers = [InstanceLedger(clock.wall) for _ in range(3)]
    names = [f"core/{number:03}" for number in range(300)]
    newest = {}
    with writing(idle, *ledgers):
        for version in range(17, 29):
            draw.shuffle(names)

            async def all_heard(version: int = version) -> None:
                for name in names:
                    clock.later(0.0001)
                    newest[name] = (version, clock.now)
                    mark = str(version).encode()
                    draw.choice(ledgers).presence_buffer.record_presence(name.encode(), mark, COPY)

            idle.loop.run(all_heard())
            time.sleep(0.1)
        wait_until(lambda: Instance.objects.filter(applied_version=28).count() == 300, 10)

    assert {one.id: one.heard_at for one in Instance.objects.all()} == {
        name: at for name, (_, at) in newest.items()
    }
    assert Acknowledgement.objects.count() == 300 * 12


def test_names_in_any_script_are_written_as_they_are(idle: Following) -> None:
    ledger = InstanceLedger(Clock().wall)
    names = ["정산/인스턴스-1", "café/é", "core/%s{}'\"\\", "Ω/𝕏"]
    with writing(idle, ledger):
        for name in names:
            hear(idle, ledger, name)
        wait_until(lambda: Instance.objects.count() == len(names), A_BATCH)

    assert set(Instance.objects.values_list("id", flat=True)) == set(names)


def test_calls_of_check_are_counted_by_caller_and_switch(idle: Following) -> None:
    clock = Clock()
    ledger = InstanceLedger(clock.wall)

    async def ask() -> None:
        for number in range(60):
            ledger.check_counter.record_check(
                "token:billing", ["segment:a", "feature:b"], None if number % 3 else "segment:a"
            )
        ledger.check_counter.record_check("core/a1", ["segment:a"], None)
        for nobody in (
            "",
            "core",
            "token:",
            "a/b/c",
            "core/\ufffd",
            "x" * 400,
            "token:" + "y" * 200,
        ):
            ledger.check_counter.record_check(nobody, ["segment:a"], None)

    idle.loop.run(ask())
    with writing(idle, ledger):
        wait_until(lambda: row("core/a1") is not None, 10)

    found, total = queries.list_callers("segment:a", NOW)
    assert total == 2
    assert (found[0].id, found[0].service) == ("token:billing", "token:billing")
    assert found[0].calls_per_second == pytest.approx(1)
    assert found[0].blocked_per_second == pytest.approx(1 / 3)
    assert row("token:billing").heard_at is None


def test_a_ledger_with_nothing_to_write_makes_no_connection(idle: Following) -> None:
    with writing(idle, InstanceLedger(Clock().wall)):
        time.sleep(0.5)

    assert idle.database.accepted == 0


def test_tables_that_refuse_are_told_once_and_written_when_they_no_longer_do(
    idle: Following, caplog: pytest.LogCaptureFixture
) -> None:
    ledger = InstanceLedger(Clock().wall)
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE core_instance RENAME TO core_instance_away")
    try:
        with writing(idle, ledger):
            hear(idle, ledger, "core/a1", "17")
            for seq in (1, 2):
                with pytest.raises(Unavailable):
                    idle.loop.run(ledger.report(report(seq), COPY))
            with connection.cursor() as cursor:
                cursor.execute("ALTER TABLE core_instance_away RENAME TO core_instance")
            assert idle.loop.run(ledger.report(report(3), COPY)) is False
            hear(idle, ledger, "core/a1", "18")
            wait_until(lambda: applies("core/a1", 18) or row().seq == 3, A_BATCH)
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE IF EXISTS core_instance_away RENAME TO core_instance")

    assert caplog.text.count("ledger.refused") == 1


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
