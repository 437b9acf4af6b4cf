"""Presence in memory: when notes are due, invalid names, and limits."""

import asyncio
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest

from controlplane.core.errors import InvalidInput, Unavailable
from controlplane.dataplane.ingest.applied_orders import MAX_SETS, AppliedOrders
from controlplane.dataplane.ingest.instance_ledger import InstanceLedger
from controlplane.dataplane.ingest.presence_buffer import HEARTBEAT_SECONDS, PresenceBuffer
from controlplane.dataplane.ingest.report_merge import parse_report
from controlplane.dataplane.memory.served_copy import Copy
from controlplane.dataplane.tests.ledgers import COPY, NOW, Clock
from controlplane.dataplane.tests.served import EPOCH, copy
from switches.emergency.orders import hash_ids
from switches.snapshot import OrderIds


def test_unchanged_heartbeats_write_at_most_once_in_ten_seconds() -> None:
    clock, woken = Clock(), []
    roll = PresenceBuffer(clock.wall, lambda: woken.append(1))
    roll.record_presence(b"core/a1", b"17", COPY)
    roll.take_due(0.0, 100, 1.0)
    woken.clear()

    written = []
    for second in range(1, 31):
        clock.later(1)
        roll.record_presence(b"core/a1", b"17", COPY)
        presences, acks = roll.take_due(float(second), 100, 1.0)
        assert acks == []
        written += [(second, each.heard_at) for each in presences]

    assert [second for second, _ in written] == [10, 20, 30]
    assert written[0][1] == NOW + timedelta(seconds=HEARTBEAT_SECONDS)
    assert woken == []


def test_a_last_heartbeat_is_written_although_none_follows() -> None:
    clock = Clock()
    roll = PresenceBuffer(clock.wall, lambda: None)
    roll.record_presence(b"core/a1", b"17", COPY)
    roll.take_due(0.0, 100, 1.0)
    clock.later(9)
    roll.record_presence(b"core/a1", b"17", COPY)

    assert roll.take_due(9.5, 100, 1.0) == ([], [])
    presences, _ = roll.take_due(10.6, 100, 1.0)

    assert [each.heard_at for each in presences] == [clock.now]


@pytest.mark.parametrize(
    "name",
    [
        b"", b"/", b"core", b"core/", b"/a1", b"a/b/c", b"core/a 1", b"core/a\t1", b"core/\x00",
        b"core/\xff\xfe", b"x" * 121 + b"/a", b"core/" + b"y" * 121, b"token:a/b", b"core/a\n",
        "core/\u200b\u202e".encode(), "core/\ufffd".encode(), b"a" * 100_000,
    ],
)  # fmt: skip
@pytest.mark.parametrize("served", [COPY, None])
def test_a_name_that_is_none_is_left_alone(name: bytes, served: object) -> None:
    roll = PresenceBuffer(Clock().wall, lambda: None)

    roll.record_presence(name, b"17", served)

    assert roll.take_due(0.0, 100, 1.0) == ([], [])


@pytest.mark.parametrize(
    "applied",
    [
        b"", b"seventeen", b"-1", b"1" * 19, b"17.5", b"nonsense.17", str(EPOCH).encode(),
        f"{EPOCH}.".encode(), "１７".encode(), b"\xff", b"17\x00", b"17 18", b"9" * 100_000,
    ],
)  # fmt: skip
def test_a_version_that_is_none_is_left_alone_and_the_instance_heard(applied: bytes) -> None:
    roll = PresenceBuffer(Clock().wall, lambda: None)

    roll.record_presence(b"core/a1", applied, COPY)
    roll.record_presence(b"core/a1", applied, None)

    presences, acks = roll.take_due(0.0, 100, 1.0)
    assert [(each.id, each.version) for each in presences] == [("core/a1", None)]
    assert acks == []


def test_a_bare_version_without_a_copy_says_nothing() -> None:
    roll = PresenceBuffer(Clock().wall, lambda: None)

    roll.record_presence(b"core/a1", b"17", None)
    roll.record_presence(b"core/a2", f"{EPOCH}.17".encode(), None)

    presences, acks = roll.take_due(0.0, 100, 1.0)
    assert [(each.id, each.version) for each in presences] == [("core/a1", None), ("core/a2", 17)]
    assert [ack.instance for ack in acks] == ["core/a2"]


def test_very_many_names_take_no_more_memory_than_the_bound_allows() -> None:
    names = 100_000
    roll = PresenceBuffer(Clock().wall, lambda: None, most=500, most_acks=700)
    for number in range(names):
        roll.record_presence(b"core/%d" % number, b"17", COPY)

    assert len(roll._notes) == 500
    assert len(roll._urgent) <= 500
    assert len(roll._beats) <= 500
    assert roll.dropped == names - 500 + names - 700
    presences, acks = roll.take_due(0.0, 10_000, 1.0)
    assert (len(presences), len(acks)) == (500, 700)
    assert presences[-1].id == f"core/{names - 1}"


def test_an_instance_that_keeps_polling_outlives_a_flood_of_names() -> None:
    clock = Clock()
    roll = PresenceBuffer(clock.wall, lambda: None, most=100)
    roll.record_presence(b"core/steady", b"17", COPY)
    roll.take_due(0.0, 1000, 1.0)
    for number in range(5000):
        roll.record_presence(b"flood/%d" % number, None, COPY)
        if number % 50 == 0:
            roll.record_presence(b"core/steady", b"17", COPY)

    presences, acks = roll.take_due(1.0, 1000, 1.0)

    assert acks == []
    assert "core/steady" not in {each.id for each in presences}


def test_hearing_an_unchanged_instance_costs_a_few_microseconds() -> None:
    roll = InstanceLedger(lambda: datetime.now(UTC)).presence_buffer
    name, mark = b"core/core-7f9c", f"{EPOCH}.17".encode()
    began = time.process_time()
    for _ in range(100_000):
        roll.record_presence(name, mark, COPY)

    each_us = (time.process_time() - began) * 10
    print(f"heard: {each_us:.2f} µs")
    assert each_us < 6


def test_what_is_said_again_was_said_when_it_was_last_heard() -> None:
    clock = Clock()
    roll = PresenceBuffer(clock.wall, lambda: None)
    roll.record_presence(b"core/a1", b"17", COPY)
    clock.later(5)
    roll.record_presence(b"core/a1", b"17", COPY)
    clock.later(5)
    roll.record_presence(b"core/a1", None, COPY)

    presences, acks = roll.take_due(0.0, 100, 1.0)

    assert [(each.heard_at, each.applied_at) for each in presences] == [
        (NOW + timedelta(seconds=10), NOW + timedelta(seconds=5))
    ]
    assert [ack.at for ack in acks] == [NOW]


def epochs_said(roll: PresenceBuffer, at: float) -> list[tuple[UUID | None, int | None]]:
    return [(each.epoch, each.version) for each in roll.take_due(at, 100, 0.0)[0]]


def test_the_same_bare_version_after_an_epoch_began_is_still_of_the_one_before() -> None:
    roll = PresenceBuffer(Clock().wall, lambda: None)
    begun = copy(18, epoch=uuid4())
    roll.record_presence(b"core/stuck", b"17", COPY)
    assert epochs_said(roll, 0.0) == [(EPOCH, 17)]

    roll.record_presence(b"core/stuck", b"17", begun)
    roll.record_presence(b"core/stuck", b"17", begun)
    presences, acks = roll.take_due(20.0, 100, 0.0)

    assert [(each.epoch, each.version) for each in presences] == [(EPOCH, 17)]
    assert acks == []
    roll.record_presence(b"core/stuck", b"18", begun)
    assert epochs_said(roll, 40.0) == [(begun.publication.epoch, 18)]


def test_an_instance_that_forgets_has_said_nothing_until_it_says_something() -> None:
    clock, woken = Clock(), []
    roll = PresenceBuffer(clock.wall, lambda: woken.append(1))
    roll.record_presence(b"core/a1", b"17", COPY)
    roll.take_due(0.0, 100, 1.0)
    clock.later(1)
    woken.clear()

    roll.record_presence(b"core/a1", None, COPY, forgets=True)

    presences, acks = roll.take_due(0.1, 100, 1.0)
    assert [(each.epoch, each.version, each.applied_at) for each in presences] == [
        (None, None, clock.now)
    ]
    assert (acks, woken) == ([], [1])
    clock.later(1)
    roll.record_presence(b"core/a1", b"17", COPY)
    assert epochs_said(roll, 0.2) == [(EPOCH, 17)]


def test_an_instance_that_always_forgets_is_written_once_in_ten_seconds() -> None:
    clock = Clock()
    roll = PresenceBuffer(clock.wall, lambda: None)

    written = []
    for second in range(31):
        roll.record_presence(b"core/a1", None, COPY, forgets=True)
        written += [second for _ in roll.take_due(float(second), 100, 1.0)[0]]
        clock.later(1)

    assert written == [0, 10, 20, 30]


def with_orders(*ids: str) -> Copy:
    return replace(COPY, orders=OrderIds(ids, ()), orders_hash=hash_ids(ids))


def test_instances_are_counted_by_the_orders_whose_hash_they_send() -> None:
    clock = Clock()
    buffer = PresenceBuffer(clock.wall, lambda: None)
    served = with_orders("a", "b")
    buffer.record_presence(b"core/gone", f"17-{served.orders_hash}".encode(), served)
    clock.later(60)
    buffer.record_presence(b"core/a1", f"17-{served.orders_hash}".encode(), served)
    buffer.record_presence(b"core/a2", f"17-{hash_ids(['x'])}".encode(), served)
    buffer.record_presence(b"core/a3", b"17", served)
    buffer.record_presence(b"core/a4", None, served)

    counts, instances = buffer.count_applied(clock.now - timedelta(seconds=30))

    assert (counts, instances) == ({"a": 1, "b": 1}, 4)


def test_an_order_that_an_instance_dropped_or_forgot_at_a_restart_is_not_counted() -> None:
    clock = Clock()
    buffer = PresenceBuffer(clock.wall, lambda: None)
    served = with_orders("a")
    mark = f"17-{served.orders_hash}".encode()
    for name in (b"core/a1", b"core/a2", b"core/a3"):
        buffer.record_presence(name, mark, served)

    buffer.record_presence(b"core/a1", b"17", COPY)
    buffer.record_presence(b"core/a2", None, served, forgets=True)

    assert buffer.count_applied(clock.now - timedelta(seconds=30)) == ({"a": 1}, 3)


def test_the_hash_of_a_copy_with_withdrawn_orders_counts_its_open_ones() -> None:
    clock = Clock()
    buffer = PresenceBuffer(clock.wall, lambda: None)
    served = replace(with_orders("a"), orders_hash=hash_ids(["a", "-b"]))

    buffer.record_presence(b"core/client", f"17-{hash_ids(['a'])}".encode(), served)
    buffer.record_presence(b"core/other-sdk", f"17-{served.orders_hash}".encode(), served)

    assert buffer.count_applied(clock.now - timedelta(seconds=30)) == ({"a": 2}, 2)


def test_reported_sets_of_orders_are_bounded() -> None:
    applied = AppliedOrders()
    for number in range(MAX_SETS + 5):
        applied.add_reported([str(number)])

    assert len(applied._sets) == MAX_SETS
    assert applied.count({hash_ids(["0"]): 1, hash_ids([str(MAX_SETS)]): 2}) == {str(MAX_SETS): 2}


def test_orders_in_a_report_count_although_the_database_is_away() -> None:
    ledger = InstanceLedger(lambda: NOW)
    ledger._is_database_away = True
    ledger.presence_buffer.record_presence(b"core/a1", None, COPY)
    order_id = str(uuid4())
    applied = ["no id", 7, order_id, None]
    document = {"service": "core", "instance": "a1", "boot": str(uuid4()), "seq": 1}

    with pytest.raises(Unavailable):
        asyncio.run(ledger.report(parse_report({**document, "applied_orders": applied})))

    counts, _ = ledger.presence_buffer.count_applied(NOW - timedelta(seconds=30))
    assert counts == {order_id: 1}


def test_only_some_thousand_orders_of_a_report_are_read() -> None:
    document = {"service": "core", "instance": "a1", "boot": str(uuid4()), "seq": 1}
    ids = [str(uuid4()) for _ in range(5001)]

    assert parse_report({**document, "applied_orders": ids}).applied_orders == tuple(ids[:5000])
    assert parse_report(document).applied_orders is None
    with pytest.raises(InvalidInput, match="applied_orders"):
        parse_report({**document, "applied_orders": "all"})
