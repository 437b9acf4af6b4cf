"""Measures what relays cost the data plane that they follow: at rest, and for one change."""

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from statistics import median
from uuid import UUID

from . import latencies, load_processes, stalls
from .fanout import REACH_SECONDS, MakeChange
from .latencies import Latencies
from .servers import ServerUnderTest

SCOPES = ("relay",)
ARRIVE_SECONDS = 60
REST_SECONDS = 20
BUNDLES = 100


@dataclass(frozen=True)
class RelayCosts:
    """The costs of `count` relays for their data plane.

    `latencies` are those of one change, from the commit until a relay has it. One change takes
    `cpu_ms` of the data plane's CPU time, and `change_bytes` on each stream. `rest_percent` is the
    share of a core that the streams take without changes.
    """

    count: int
    latencies: Latencies
    cpu_ms: float
    change_bytes: float
    rest_percent: float


@dataclass(frozen=True)
class BundleCosts:
    """Milliseconds that a bundle takes after one of `engaged` switches has changed: medians."""

    engaged: int
    collect_ms: float
    sign_ms: float
    difference_ms: float
    apply_ms: float


def measure(
    server: ServerUnderTest, token: str, count: int, changes: int, ring: MakeChange
) -> RelayCosts:
    """Connect `count` relays, rest, and make `changes` changes one after another with `ring`."""
    took: list[float] = []
    received: list[float] = []
    cpu = 0.0
    with load_processes.running("bench.listeners", "relays", server.port, token, count) as crowd:
        crowd.line(ARRIVE_SECONDS, f"{count} relays arrive")
        server.settle()
        cpu_before = server.threads_cpu_seconds()
        time.sleep(REST_SECONDS)
        rest_share = (server.threads_cpu_seconds() - cpu_before) / REST_SECONDS
        with stalls.watch_stalls() as stalled:
            for _ in range(changes):
                cpu_before, began = server.threads_cpu_seconds(), time.monotonic()
                version, moment = ring()
                line = crowd.line(REACH_SECONDS, f"version {version} reaches all relays")
                if line["version"] != version:
                    raise SystemExit(f"bench: relays got {line['version']}, not {version}")
                took += [(each - moment) / 1e6 for each in line["moments"]]
                received.append(line["bytes"] / count)
                server.settle()
                rest_seconds = rest_share * (time.monotonic() - began)
                cpu += server.threads_cpu_seconds() - cpu_before - rest_seconds
    return RelayCosts(
        count=count,
        latencies=latencies.summarize(took, stalled.worst_ms),
        cpu_ms=cpu / changes * 1e3,
        change_bytes=median(received),
        rest_percent=rest_share * 100,
    )


def measure_bundles(engaged: int) -> BundleCosts:
    """Measure bundles in this process: each time one of `engaged` switches is another one."""
    from controlplane.core.signatures import SigningKey
    from controlplane.dataplane.memory.served_copy import Copy
    from controlplane.dataplane.relay import difference
    from controlplane.dataplane.relay.bundle import sign_bundle
    from controlplane.dataplane.relay.collection import collect
    from controlplane.dataplane.state import State
    from switches.snapshot import SnapshotVersion
    from switches.tests.snapshots import make_entry

    key, state = SigningKey.generate(), State()
    keys = {key.public.id: key.public}
    entries = [make_entry(f"feature:payments.switch-{n}") for n in range(engaged + BUNDLES)]
    noon = datetime(2026, 11, 21, 12, tzinfo=UTC)

    def publish(number: int) -> None:
        version = SnapshotVersion(UUID(int=1), number, noon + timedelta(seconds=number))
        some = entries[number : number + engaged]
        state.install_copy(Copy.render(version, some, state.published), 0.0)

    publish(0)
    state.install_keys([key], ())
    state.install_tokens(1, {})
    first = collect(state, None)
    assert first is not None
    signed = sign_bundle(first, [key])
    received = difference.apply_event(None, difference.serialize_full(signed), keys)
    steps: list[tuple[float, ...]] = []
    for number in range(1, BUNDLES):
        publish(number)
        moments = [time.perf_counter()]
        bundle = collect(state, signed.bundle)
        assert bundle is not None
        moments.append(time.perf_counter())
        before, signed = signed, sign_bundle(bundle, [key])
        moments.append(time.perf_counter())
        data = difference.serialize_difference(before.parts, signed)
        moments.append(time.perf_counter())
        received = difference.apply_event(received, data, keys)
        moments.append(time.perf_counter())
        steps.append(tuple(b - a for a, b in pairwise(moments)))
    return BundleCosts(engaged, *(median(step) * 1e3 for step in zip(*steps, strict=True)))
