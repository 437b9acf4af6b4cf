"""A relay sends what its instances told it, again until it is accepted, and only once more."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import orjson
import pytest

from controlplane.core.errors import Unavailable
from controlplane.dataplane.emergency.order_list import count_applied
from controlplane.dataplane.ingest.relay_message import RelayMessage
from controlplane.dataplane.ingest.report_merge import parse_report
from controlplane.dataplane.metrics import render_metrics
from controlplane.dataplane.relay.forwarder import ForwardingTiming, UpstreamFailed
from controlplane.dataplane.relay.spool import Spool
from controlplane.dataplane.tests.ledgers import NOW
from controlplane.dataplane.tests.relay_messages import (
    WEST,
    make_batch,
    make_counts,
    make_document,
    make_message,
    make_presence,
    make_status,
)
from controlplane.dataplane.tests.relays import Relay, Upstream
from controlplane.dataplane.tests.served import EPOCH

T = TypeVar("T")


class Console:
    """An upstream that remembers the messages it accepted."""

    def __init__(self) -> None:
        self.messages: list[RelayMessage] = []
        self.upstream = Upstream(self.receive)

    async def receive(self, message: RelayMessage) -> int:
        self.messages.append(message)
        return 0

    @property
    def seqs(self) -> list[int]:
        """The `seq` of each accepted report."""
        batches = [batch for message in self.messages for batch in message.batches]
        return [int(each.document["seq"]) for batch in batches for each in batch.reports]


@asynccontextmanager
async def running(*relays: Relay) -> AsyncIterator[None]:
    for relay in relays:
        await relay.start()
    try:
        yield
    finally:
        for relay in relays:
            await relay.stop()


def run(test: Callable[[], Awaitable[T]]) -> T:
    return asyncio.run(test())


@pytest.fixture
def console() -> Console:
    return Console()


@pytest.fixture
def relay(tmp_path: Path, console: Console) -> Relay:
    return Relay("east", tmp_path, {"a": console.upstream})


def test_reports_presences_acknowledgements_and_counts_go_in_batches(
    relay: Relay, console: Console
) -> None:
    async def test() -> None:
        async with running(relay):
            buffer = relay.ledger.presence_buffer
            buffer.record_presence(b"core/a1", f"{EPOCH}.17".encode(), relay.state.copy)
            relay.ledger.check_counter.record_check("token:billing", ["segment:a"], "segment:a")
            await relay.report(make_document(1))
            assert await relay.send()

    run(test)
    (message,) = console.messages
    batches = message.batches
    assert {batch.relay for batch in batches} == {"east"}
    assert {batch.process for batch in batches} == {relay.ledger.spool.process}
    assert len({batch.seq for batch in batches}) == len(batches)
    (report,) = [each for batch in batches for each in batch.reports]
    assert (report.document, report.token_id, report.epoch) == (make_document(1), 7, EPOCH)
    assert report.at == NOW
    (presence,) = [each for batch in batches for each in batch.presences]
    assert presence == make_presence()
    assert [(ack.version, ack.at) for batch in batches for ack in batch.acks] == [(17, NOW)]
    (counts,) = [each for batch in batches for each in batch.checks]
    assert counts.counts.switches == {"segment:a": [0, 1]}
    status = message.status
    assert (status.name, status.version, status.instances) == ("east", 17, 1)


def test_nothing_new_sends_nothing_until_the_status_is_due(relay: Relay, console: Console) -> None:
    async def test() -> None:
        async with running(relay):
            await relay.send()
            await relay.send()

    run(test)
    assert len(console.upstream.bodies) == 1


def test_last_status_says_that_the_relay_has_stopped_and_sends_what_it_holds(
    relay: Relay, console: Console
) -> None:
    async def test() -> None:
        async with running(relay):
            await relay.send()
            await relay.report(make_document(1))
            relay.ledger.check_counter.record_check("token:billing", ["segment:a"], None)
            await relay.send_stop()

    run(test)
    first, last = console.messages
    assert (first.status.is_stopped, last.status.is_stopped) == (False, True)
    assert first.status.process == last.status.process
    assert console.seqs == [1]
    assert len([each for each in last.batches if each.checks]) == 1


def test_relay_that_stops_without_an_upstream_keeps_all_on_its_disk(
    tmp_path: Path, relay: Relay, console: Console
) -> None:
    again = Relay("east", tmp_path, {"a": console.upstream})

    async def test() -> None:
        async with running(relay):
            await relay.send()
            console.upstream.fails = 503
            relay.ledger.check_counter.record_check("token:billing", ["segment:a"], None)
            with pytest.raises(UpstreamFailed):
                await relay.send_stop()
        console.upstream.fails = 0
        async with running(again):
            await again.send()

    run(test)
    (sent,) = [each for message in console.messages for each in message.batches if each.checks]
    assert sent.process == console.messages[0].status.process


def test_relay_that_was_never_heard_reports_no_stop(relay: Relay, console: Console) -> None:
    async def test() -> None:
        async with running(relay):
            await relay.forwarder.report_stop()
            await relay.send_stop()

    run(test)
    assert console.messages == []


@pytest.mark.parametrize("status", [400, 401, 403, 413, 429, 500, 503])
def test_refused_batch_is_sent_again_as_it_was(relay: Relay, console: Console, status: int) -> None:
    async def test() -> None:
        async with running(relay):
            await relay.report(make_document(1))
            console.upstream.fails = status
            assert not await relay.send()
            await relay.report(make_document(2))
            assert not await relay.send()
            console.upstream.fails = 0
            assert await relay.send()
            assert await relay.send()
            assert relay.ledger.spool.size_bytes == 0

    run(test)
    sent = [orjson.loads(body)["batches"] for body in console.upstream.bodies]
    assert len(sent[0]) == 1
    assert sent[0] == sent[1] == sent[2]
    assert console.seqs == [1, 2]


def test_batch_whose_answer_was_lost_has_the_same_number_after_a_restart(
    tmp_path: Path, relay: Relay, console: Console
) -> None:
    async def test() -> None:
        async with running(relay):
            relay.ledger.check_counter.record_check("token:billing", ["segment:a"], None)
            await relay.report(make_document(1))
            console.upstream.loses_answer = True
            assert not await relay.send()
        again = Relay("east", tmp_path, {"a": console.upstream})
        console.upstream.loses_answer = False
        async with running(again):
            assert await again.send()

    run(test)
    first, second = console.messages
    assert first.batches == second.batches
    assert first.status.process == second.status.process


def test_next_upstream_gets_what_the_first_did_not_take(tmp_path: Path, console: Console) -> None:
    lost = Console()
    lost.upstream.fails = 503
    relay = Relay("east", tmp_path, {"a": lost.upstream, "b": console.upstream})

    async def test() -> None:
        async with running(relay):
            await relay.report(make_document(1))
            assert not await relay.send()
            assert await relay.send()
            await relay.report(make_document(2))
            assert await relay.send()

    run(test)
    assert console.seqs == [1, 2]
    assert len(lost.upstream.bodies) == 1


async def send_until_refused(relay: Relay) -> None:
    for seq in range(1, 20):
        await relay.report(make_document(seq))
        await relay.send()


def test_full_spool_refuses_reports_until_the_upstream_takes_some(
    tmp_path: Path, console: Console
) -> None:
    relay = Relay("east", tmp_path, {"a": console.upstream}, max_bytes=2000)

    async def test() -> Unavailable:
        async with running(relay):
            console.upstream.fails = 503
            with pytest.raises(Unavailable) as caught:
                await send_until_refused(relay)
            console.upstream.fails = 0
            assert await relay.send()
            await relay.report(make_document(99))
            while relay.ledger.spool.size_bytes:
                assert await relay.send()
        return caught.value

    error = run(test)
    assert error.retry_after == 10
    assert console.seqs == [*range(1, len(console.seqs)), 99]
    assert relay.ledger.refused_full == 1


def test_report_is_refused_while_there_is_no_disk(tmp_path: Path, console: Console) -> None:
    (tmp_path / "spool").write_text("no folder")
    relay = Relay("east", tmp_path, {"a": console.upstream})

    async def test() -> None:
        task = asyncio.create_task(relay.ledger.run(relay.config))
        await asyncio.sleep(0.1)
        with pytest.raises(Unavailable):
            await relay.report(make_document(1))
        task.cancel()

    run(test)


def test_notes_stay_in_memory_while_the_upstream_is_away(relay: Relay, console: Console) -> None:
    async def test() -> None:
        async with running(relay):
            console.upstream.fails = 503
            await relay.send()
            buffer = relay.ledger.presence_buffer
            for version in (17, 18, 19):
                mark = f"{EPOCH}.{version}".encode()
                buffer.record_presence(b"core/a1", mark, relay.state.copy)
                relay.clock.later(60)
            relay.ledger.check_counter.record_check("token:billing", ["segment:a"], None)
            await relay.send()
            assert relay.ledger.spool.size_bytes == 0
            console.upstream.fails = 0
            assert await relay.send()
            assert await relay.send()

    run(test)
    batches = [batch for message in console.messages for batch in message.batches]
    acks = [ack for batch in batches for ack in batch.acks]
    assert [(ack.version, (ack.at - NOW).total_seconds()) for ack in acks] == [
        (17, 0),
        (18, 60),
        (19, 120),
    ]
    (presence,) = [each for batch in batches for each in batch.presences]
    assert presence.version == 19


def test_relay_behind_a_relay_keeps_its_name_and_numbers(tmp_path: Path, console: Console) -> None:
    near = Relay("near", tmp_path / "near", {"console": console.upstream})
    far = Relay("far", tmp_path / "far", {"near": Upstream(near.ledger.receive)})

    async def test() -> None:
        async with running(near, far):
            far.ledger.check_counter.record_check("token:billing", ["segment:a"], None)
            await far.report(make_document(1))
            await near.report(make_document(2))
            far.upstreams["near"].loses_answer = True
            assert not await far.send()
            far.upstreams["near"].loses_answer = False
            assert await far.send()
            assert await near.send()

    run(test)
    assert console.messages[0].status.name == "near"
    assert [status.name for status in console.messages[0].relays] == ["far"]
    batches = [batch for message in console.messages for batch in message.batches]
    assert {batch.relay: batch.process for batch in batches} == {
        "near": near.ledger.spool.process,
        "far": far.ledger.spool.process,
    }
    assert sorted(console.seqs) == [1, 2]
    assert len([batch for batch in batches if batch.checks]) == 1


def test_status_of_a_relay_behind_is_passed_on_once(relay: Relay, console: Console) -> None:
    async def test() -> None:
        async with running(relay):
            behind = make_status(WEST, "west")
            sent = make_batch(1, process=WEST, relay="west", checks=[make_counts()])
            await relay.ledger.receive(make_message(sent, status=behind))
            await relay.send()
            await relay.report(make_document(1))
            await relay.send()

    run(test)
    assert [[each.name for each in message.relays] for message in console.messages] == [
        ["west"],
        [],
    ]


@pytest.mark.parametrize("late", [199, 1])
def test_batch_that_another_one_has_overtaken_is_passed_on(
    relay: Relay, console: Console, late: int
) -> None:
    async def test() -> None:
        async with running(relay):
            for seq in (200, late, 200):
                sent = make_batch(seq, process=WEST, relay="west", checks=[make_counts()])
                await relay.ledger.receive(make_message(sent))
            await relay.send()

    run(test)
    batches = [batch for message in console.messages for batch in message.batches]
    assert [batch.seq for batch in batches] == [200, late]


def test_spool_of_a_process_that_is_gone_is_sent_by_another(
    tmp_path: Path, console: Console
) -> None:
    gone = Relay("east", tmp_path, {"a": console.upstream})
    kept = Relay("east", tmp_path, {"a": console.upstream}, timing=ForwardingTiming(adopt=0))

    async def test() -> None:
        async with running(kept):
            async with running(gone):
                await gone.report(make_document(1))
                await kept.send()
            assert console.seqs == []
            await kept.send()
            assert console.seqs == [1]
            await kept.send()
            assert len([*Spool.claim_free(tmp_path / "spool")]) == 1

    run(test)
    (batch,) = [batch for message in console.messages for batch in message.batches]
    assert batch.process == gone.ledger.spool.process != kept.ledger.spool.process


def test_metrics_show_requests_and_the_spool(relay: Relay, console: Console) -> None:
    async def test() -> str:
        async with running(relay):
            console.upstream.fails = 503
            await relay.report(make_document(1))
            await relay.send()
            return render_metrics(relay.state, "text/plain")[2].decode()

    lines = dict(line.rsplit(" ", 1) for line in run(test).splitlines() if line[0] != "#")
    pid = os.getpid()
    assert float(lines[f'switchgear_relay_spool_bytes{{worker="{pid}"}}']) > 200
    assert float(lines[f'switchgear_relay_spool_oldest_seconds{{worker="{pid}"}}']) > 0
    assert float(lines[f'switchgear_relay_requests_total{{outcome="failed",worker="{pid}"}}']) == 1


def test_orders_applied_by_instances_are_in_the_status_and_add_up(
    relay: Relay, console: Console
) -> None:
    order_id = "3f2b7c1e-0000-4000-8000-000000000001"
    report = parse_report(make_document(1, applied_orders=[order_id]))
    behind = make_status(WEST, "west", applied_orders={order_id: 4}, polling=5)

    async def test() -> None:
        async with running(relay):
            buffer = relay.ledger.presence_buffer
            buffer.record_presence(b"core/a1", b"17", relay.state.copy)
            buffer.record_presence(b"core/a2", b"17", relay.state.copy)
            await relay.ledger.report(report, relay.state.copy)
            await relay.ledger.receive(make_message(status=behind))
            await relay.send()

    run(test)
    (message,) = console.messages
    assert (message.status.applied_orders, message.status.polling) == ({order_id: 1}, 2)
    assert count_applied(relay.state) == ({order_id: 5}, 7)


@pytest.mark.parametrize(("status", "level"), [(403, "ERROR"), (413, "ERROR"), (503, "WARNING")])
def test_failure_is_logged_once_and_as_an_error_if_somebody_must_act(
    relay: Relay, console: Console, caplog: pytest.LogCaptureFixture, status: int, level: str
) -> None:
    async def test() -> None:
        async with running(relay):
            console.upstream.fails = status
            await relay.send()
            await relay.send()

    run(test)
    assert [record.levelname for record in caplog.records] == [level]
