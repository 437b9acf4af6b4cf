"""Random histories of relays that fail: what instances were told is stored is counted once.

Instances report through any relay or directly; answers are lost, upstreams refuse, relays are
killed and come back. Afterwards, everything is delivered.
"""

import random
from collections import Counter
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.db.models import Sum

from controlplane.core.gates.models import EventCount
from controlplane.core.models import CheckCount
from controlplane.dataplane.ingest.instance_ledger import InstanceLedger, Timing
from controlplane.dataplane.ingest.report_merge import parse_report
from controlplane.dataplane.relay import forwarder
from controlplane.dataplane.tests.conftest import Following
from controlplane.dataplane.tests.ledgers import COPY, Clock, row, writing
from controlplane.dataplane.tests.relays import Relay, Upstream

pytestmark = pytest.mark.usefixtures("published")
STEPS = 50
QUICK = Timing(batch=0.0, max_pause=0.02)
EAGER = forwarder.ForwardingTiming(counts=0.0, status=0.0)


class Process:
    """A process of the instance `name`, with counters since its start."""

    def __init__(self, name: str, clock: Clock, draw: random.Random) -> None:
        self.name = name
        self.boot = UUID(int=draw.getrandbits(128), version=4)
        self.started_at = clock.now
        self.seq = self.good = self.total = self.allowed = 0
        self.acknowledged = (0, 0, 0)

    def work(self, draw: random.Random) -> None:
        more = draw.randint(0, 9)
        self.total += more
        self.good += draw.randint(0, more)
        self.allowed += draw.randint(0, 9)

    def next_report(self, clock: Clock) -> dict[str, Any]:
        self.seq += 1
        return {
            "service": "core",
            "instance": self.name,
            "boot": str(self.boot),
            "started_at": self.started_at.isoformat(),
            "sent_at": clock.now.isoformat(),
            "seq": self.seq,
            "sli": [{"slo": "orders", "good": self.good, "total": self.total}],
            "checks": [{"switch": "segment:a", "allowed": self.allowed, "blocked": 0}],
        }


class World:
    """Relays `near` and `other` before a data plane, and `far`, which follows either of them."""

    def __init__(self, folder: Path, ledger: InstanceLedger, clock: Clock, seed: int) -> None:
        self.draw, self.clock, self.ledger = random.Random(seed), clock, ledger
        self.folder = folder
        self.plane = Upstream(ledger.receive)
        self.relays: dict[str, Relay] = {}
        self.processes = [Process(f"a{n}", clock, self.draw) for n in range(3)]
        self.former: list[Process] = []
        self.checked = Counter[str]()
        """`/check` requests by relay, without those that a killed relay had in memory."""

    def make_relay(self, name: str) -> Relay:
        if name == "far":
            upstreams = {
                each: Upstream(lambda message, each=each: self.relays[each].ledger.receive(message))
                for each in ("near", "other")
            }
        else:
            upstreams = {"plane": Upstream(self.ledger.receive)}
        return Relay(name, self.folder / name, upstreams, timing=EAGER, clock=self.clock)

    async def start(self) -> None:
        for name in ("near", "other", "far"):
            self.relays[name] = self.make_relay(name)
            await self.relays[name].start()

    async def stop(self) -> None:
        for relay in self.relays.values():
            await relay.stop()

    async def report(self) -> None:
        process = self.draw.choice(self.processes)
        process.work(self.draw)
        document = process.next_report(self.clock)
        holder = self.draw.choice([self.ledger, *(each.ledger for each in self.relays.values())])
        await holder.report(parse_report(document), COPY)
        process.acknowledged = (process.good, process.total, process.allowed)

    async def check(self) -> None:
        name, relay = self.draw.choice([*self.relays.items()])
        for _ in range(self.draw.randint(1, 5)):
            relay.ledger.check_counter.record_check("token:billing", ["segment:b"], None)
            self.checked[name] += 1

    async def send(self) -> None:
        relay = self.draw.choice([*self.relays.values()])
        for upstream in relay.upstreams.values():
            upstream.fails = self.draw.choice((0, 0, 0, 503))
            upstream.loses_answer = self.draw.random() < 0.3
        await relay.send()

    async def kill(self) -> None:
        name = self.draw.choice([*self.relays])
        relay = self.relays[name]
        for counts in relay.ledger.check_counter.take_counts().values():
            self.checked[name] -= counts.switches["segment:b"][0]
        await relay.stop()
        self.relays[name] = self.make_relay(name)
        await self.relays[name].start()

    async def restart(self) -> None:
        """End a process, and begin another one under its name."""
        before = self.draw.choice(self.processes)
        self.former.append(before)
        self.clock.later(1)
        self.processes[self.processes.index(before)] = Process(before.name, self.clock, self.draw)

    async def deliver_all(self) -> None:
        for name in ("far", "near", "other"):
            relay = self.relays[name]
            for upstream in relay.upstreams.values():
                upstream.fails, upstream.loses_answer = 0, False
            for _ in range(3):
                assert await relay.send()
            assert relay.ledger.spool.size_bytes == 0

    async def run(self, *more: str) -> None:
        steps = ["report"] * 4 + ["check"] * 2 + ["send"] * 5 + ["kill", *more]
        await self.start()
        try:
            for _ in range(STEPS):
                self.clock.later(self.draw.uniform(0.1, 2))
                await getattr(self, self.draw.choice(steps))()
            self.clock.later(1)
            await self.deliver_all()
        finally:
            await self.stop()


def make_history(idle: Following, folder: Path, seed: int, *more: str) -> World:
    clock = Clock()
    ledger = InstanceLedger(clock.wall, timing=QUICK)
    world = World(folder, ledger, clock, seed)
    with writing(idle, ledger):
        idle.loop.run(world.run(*more))
    return world


def sum_events(name: str) -> tuple[int, int]:
    found = EventCount.objects.filter(instance=f"core/{name}", slo="orders")
    sums = found.aggregate(good=Sum("good", default=0), total=Sum("total", default=0))
    return sums["good"], sums["total"]


def sum_checks(switch: str) -> int:
    found = CheckCount.objects.filter(switch=switch, seconds=3600)
    return found.aggregate(allowed=Sum("allowed", default=0))["allowed"]


@pytest.mark.parametrize("seed", range(3))
def test_each_acknowledged_count_is_stored_once(idle: Following, tmp_path: Path, seed: int) -> None:
    world = make_history(idle, tmp_path, seed)

    for process in world.processes:
        found = row(f"core/{process.name}")
        checks = 0 if found is None else found.checks["segment:a"]["allowed"]
        assert (*sum_events(process.name), checks) == process.acknowledged
        assert found is None or found.contested_at is None


@pytest.mark.parametrize("seed", range(3, 6))
def test_no_count_is_stored_twice_although_processes_restart(
    idle: Following, tmp_path: Path, seed: int
) -> None:
    world = make_history(idle, tmp_path, seed, "restart")

    for process in world.processes:
        ended = [each for each in world.former if each.name == process.name]
        _, total = sum_events(process.name)
        assert 0 <= total <= sum(each.acknowledged[1] for each in (*ended, process))
        found = row(f"core/{process.name}")
        assert found is None or found.contested_at is None


@pytest.mark.parametrize("seed", range(6, 11))
def test_each_check_is_counted_once(idle: Following, tmp_path: Path, seed: int) -> None:
    world = make_history(idle, tmp_path, seed)

    assert 0 < sum_checks("segment:b") == sum(world.checked.values())
