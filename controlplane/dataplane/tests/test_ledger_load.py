"""Large writes never block the event loop that answers polls."""

import asyncio
import gc
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest
from django.db import connection

from breakers.models import BreakerState, Transition
from controlplane.core.errors import InvalidInput, Unavailable
from controlplane.core.models import Instance
from controlplane.dataplane.ingest.check_counts import MAX_SWITCHES, CheckCounter
from controlplane.dataplane.ingest.instance_ledger import InstanceLedger, Timing
from controlplane.dataplane.ingest.instance_rows import InstanceReport
from controlplane.dataplane.ingest.report_fields import MAX_BREAKERS
from controlplane.dataplane.tests.conftest import Following
from controlplane.dataplane.tests.ledgers import BOOT, COPY, Clock, report, writing

loaded = pytest.mark.usefixtures("published", "frozen")

MAX_STOP_SECONDS = 0.1
"""Longest interval in seconds without a response."""


@pytest.fixture(scope="module")
def frozen() -> Iterator[None]:
    """Exclude existing objects from garbage collection, as a running data plane does."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def longest_stop(idle: Following, work: Callable[[], Awaitable[None]]) -> float:
    """Return the longest time, in seconds, that the loop ran nothing else during that work."""
    return asyncio.run_coroutine_threadsafe(_longest_stop(work), idle.loop.loop).result(timeout=60)


async def _longest_stop(work: Callable[[], Awaitable[None]]) -> float:
    longest, ended = 0.0, asyncio.Event()

    async def look() -> None:
        nonlocal longest
        while not ended.is_set():
            began = time.thread_time(), time.monotonic()
            await asyncio.sleep(0.001)
            # A busy machine may stop the whole thread, which this test doesn't measure.
            stood = min(time.thread_time() - began[0], time.monotonic() - began[1])
            longest = max(longest, stood)

    looking = asyncio.create_task(look())
    await work()
    ended.set()
    await looking
    return longest


def large(number: int, seq: int) -> InstanceReport:
    checks = {f"segment:s{switch}": (10 * seq, 2) for switch in range(1000)}
    return report(seq, instance=f"i{number}", checks=checks)


@loaded
@pytest.mark.faults
def test_large_reports_are_stored_or_refused_soon_and_stop_nobody(idle: Following) -> None:
    ledger = InstanceLedger(Clock().wall)
    outcomes: Counter[str] = Counter()
    reports = [[large(number, seq) for number in range(150)] for seq in (1, 2)]
    rounds: list[float] = []

    async def send(one: InstanceReport) -> None:
        while True:
            began = time.monotonic()
            try:
                await ledger.report(one, COPY)
            except Unavailable:
                outcomes["refused"] += 1
                rounds.append(time.monotonic() - began)
                await asyncio.sleep(1)
            else:
                outcomes["accepted"] += 1
                return

    async def sent() -> None:
        for some in reports:
            await asyncio.gather(*(send(one) for one in some))

    with writing(idle, ledger):
        stop = longest_stop(idle, sent)

    print(
        f"150 reports of 1,000 checks, twice: {dict(outcomes)}, longest stop {stop * 1000:.0f} ms"
    )
    assert outcomes["accepted"] == 300
    assert max(rounds, default=0) < 5.5
    assert Instance.objects.filter(seq=2).count() == 150
    assert stop < MAX_STOP_SECONDS


@loaded
def test_reports_of_very_many_breakers_are_read_and_stored_and_stop_nobody(
    idle: Following,
) -> None:
    ledger = InstanceLedger(Clock().wall)
    step = {"n": 1, "from": "closed", "to": "open", "at": "2026-11-21T11:00:00Z"}
    breakers = [
        {"dependency": f"core->s{number:03}", "state": "open", "transitions": [step]}
        for number in range(MAX_BREAKERS)
    ]
    documents = [
        {
            "service": "core",
            "instance": f"i{number}",
            "boot": str(uuid4()),
            "seq": 1,
            "breakers": breakers,
        }
        for number in range(20)
    ]

    async def sent() -> None:
        async def send(document: dict[str, object]) -> None:
            await ledger.report(await ledger.parser.parse(document), COPY)

        await asyncio.gather(*map(send, documents))

    with writing(idle, ledger):
        stop = longest_stop(idle, sent)

    print(f"20 reports of {MAX_BREAKERS} breakers: longest stop {stop * 1000:.0f} ms")
    assert BreakerState.objects.count() == Transition.objects.count() == 20 * MAX_BREAKERS
    assert stop < MAX_STOP_SECONDS


@loaded
def test_large_reports_that_come_all_at_once_are_read_in_turns(idle: Following) -> None:
    ledger = InstanceLedger(Clock().wall)
    checks = [
        {"switch": f"segment:s{number}", "allowed": 1, "blocked": 0} for number in range(1000)
    ]
    document = {"service": "core", "instance": "a1", "boot": str(BOOT), "seq": 1, "checks": checks}
    wrong = {**document, "seq": -1}

    async def read() -> None:
        found = await asyncio.gather(
            *(ledger.parser.parse(one) for one in [document, wrong] * 15), return_exceptions=True
        )
        assert sum(isinstance(one, InstanceReport) for one in found) == 15
        assert sum(isinstance(one, InvalidInput) for one in found) == 15

    assert longest_stop(idle, read) < MAX_STOP_SECONDS


@loaded
@pytest.mark.slow
def test_calls_for_very_many_switches_are_counted_in_steps_that_stop_nobody(
    idle: Following,
) -> None:
    ledger = InstanceLedger(Clock().wall, timing=Timing(counts=0.1))
    callers = [f"core/c{number}" for number in range(25)]
    switches = [f"segment:s{number}" for number in range(1000)]

    async def ask_all() -> None:
        for caller in callers:
            ledger.check_counter.record_check(caller, switches, None)
            await asyncio.sleep(0)
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(1) as beside:  # One thread has one connection.
            while await loop.run_in_executor(beside, Instance.objects.count) < len(callers):
                await asyncio.sleep(0.05)
            await loop.run_in_executor(beside, lambda: connection.close())

    with writing(idle, ledger):
        stop = longest_stop(idle, ask_all)

    print(f"25,000 pairs: longest stop {stop * 1000:.0f} ms")
    assert stop < MAX_STOP_SECONDS


def test_one_caller_is_counted_for_a_thousand_switches_at_most() -> None:
    counter = CheckCounter(Clock().wall)
    for turn in range(4):
        counter.record_check("core/x", [f"segment:{turn}.{number}" for number in range(600)], None)
    counter.record_check("core/y", ["segment:a"], None)

    taken = counter.take_counts()

    assert len(taken["core/x"].switches) == MAX_SWITCHES
    assert len(taken["core/y"].switches) == 1
    assert counter.left_out == 4 * 600 - MAX_SWITCHES
