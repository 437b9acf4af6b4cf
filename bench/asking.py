"""What a question costs a service: `allowed()` beside its peers, and with a console that hangs.

Run as a process of its own: `python -m bench.asking PORT TOKEN ROUNDS SECONDS PID…` asks the data
plane of that port once for what is engaged, and answers from memory after that. Those processes are
the plane's, to be stopped and continued. Prints one JSON line.
"""

import json
import os
import random
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "client"))

from bench import clients, ground, peers
from bench.peers import Keys, Peer
from bench.servers import HOST, Server
from switchgear import Switchgear

STOPPED = 1000
RAMPING = ground.key(STOPPED)
BATCH_SECONDS = 0.05
SETTLE_SECONDS = 1.0
READY_SECONDS = 20.0
PATIENCE_SECONDS = 60


@dataclass(frozen=True)
class Asking:
    """Medians of rounds. `micros` by the name of who was asked, `check` and `ramping` of ours;
    `honest` and `hanging` are p50, p99 and worst of single calls while the console was well, and
    while it hung."""

    micros: dict[str, float]
    check: float
    ramping: float
    honest: tuple[float, float, float]
    hanging: tuple[float, float, float]


def lay() -> None:
    """A thousand switches engaged, and one that ramps. Wants no plane that runs."""
    from switches.models import Episode

    ground.lay(STOPPED + 2, STOPPED + 2)
    Episode.objects.filter(switch_id=f"feature:{RAMPING}").update(allow_percent=50)


def measure(plane: Server, token: str, rounds: int, seconds: int) -> Asking:
    """In another process, on the core of this one."""
    arguments = (plane.port, token, rounds, seconds, *plane.pids())
    patience = PATIENCE_SECONDS + rounds * seconds * 4
    with clients.running("bench.asking", *arguments) as asking:
        return Asking(**asking.line(patience, "questions of a service"))


def main(port: int, token: str, rounds: int, seconds: int, pids: Sequence[int]) -> None:
    engaged = [ground.key(n) for n in range(STOPPED)]
    free = [f"{key}-not" for key in engaged]
    keys = [*engaged, *free]
    random.Random(1).shuffle(keys)
    url = f"http://{HOST}:{port}"
    with Switchgear(url, token, service="bench", state_dir=None) as gear:
        if not gear.wait_ready(READY_SECONDS):
            raise SystemExit(f"bench: the client hears nothing of the console: {gear.status()}")
        with peers.ready(engaged, free) as others:
            asked = [_ours(gear), _ours_checked(gear), _ours_ramping(gear), *others]
            verify(gear, [asked[0], asked[1], *others], keys, set(engaged))
            micros = compare(asked, keys, rounds)
        honest, hanging = disturb(gear, keys, rounds, seconds, pids)
    check, ramping = micros.pop("check"), micros.pop("ramping")
    print(json.dumps(asdict(Asking(micros, check, ramping, honest, hanging))), flush=True)


def verify(gear: Switchgear, asked: Sequence[Peer], keys: Keys, engaged: set[str]) -> None:
    """End the run unless all say the same, and the truth."""
    for one in asked:
        wrong = [key for key in keys if one.ask(key) != (key not in engaged)]
        if wrong:
            raise SystemExit(f"bench: {one.name} is wrong of {len(wrong)} keys: {wrong[:3]}")
    told = {gear.allowed(feature=RAMPING, targeting_key=f"user-{n}") for n in range(100)}
    if told != {True, False}:
        raise SystemExit(f"bench: the switch that should ramp says {told} to everybody")


def compare(asked: Sequence[Peer], keys: Keys, rounds: int) -> dict[str, float]:
    """Microseconds a question, by name: medians of rounds in which all take turns."""
    times = {one.name: max(1, round(BATCH_SECONDS / _seconds(one, keys, 1))) for one in asked}
    took: dict[str, list[float]] = {one.name: [] for one in asked}
    for _ in range(rounds * 2):
        for one in asked:
            seconds = _seconds(one, keys, times[one.name])
            took[one.name].append(seconds / times[one.name] / len(keys) * 1e6)
    return {name: median(each) for name, each in took.items()}


def disturb(
    gear: Switchgear, keys: Keys, rounds: int, seconds: int, pids: Sequence[int]
) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    """p50, p99 and worst of one `allowed()`, while the console is well and while it hangs."""
    well, hanging = [], []
    for _ in range(rounds):
        well.append(_calls(gear, keys, seconds))
        with _stopped(pids):
            hanging.append(_calls(gear, keys, seconds))
        time.sleep(SETTLE_SECONDS)
    return _middle(well), _middle(hanging)


def _ours(gear: Switchgear) -> Peer:
    def ask_all(keys: Keys) -> None:
        for key in keys:
            gear.allowed(feature=key)

    return Peer("switchgear", lambda key: gear.allowed(feature=key), ask_all)


def _ours_checked(gear: Switchgear) -> Peer:
    def ask_all(keys: Keys) -> None:
        for key in keys:
            gear.check(feature=key)

    return Peer("check", lambda key: gear.check(feature=key).allowed, ask_all)


def _ours_ramping(gear: Switchgear) -> Peer:
    """One switch that ramps, and as many users as there are keys."""

    def ask(key: str) -> bool:
        return gear.allowed(feature=RAMPING, targeting_key=key)

    def ask_all(keys: Keys) -> None:
        for key in keys:
            gear.allowed(feature=RAMPING, targeting_key=key)

    return Peer("ramping", ask, ask_all)


def _seconds(asked: Peer, keys: Keys, times: int) -> float:
    began = time.perf_counter()
    for _ in range(times):
        asked.ask_all(keys)
    return time.perf_counter() - began


def _calls(gear: Switchgear, keys: Keys, seconds: float) -> list[float]:
    """What single calls took, in microseconds: p50, p99 and the worst."""
    took: list[int] = []
    clock = time.perf_counter_ns
    until = clock() + int(seconds * 1e9)
    while clock() < until:
        for key in keys:
            began = clock()
            gear.allowed(feature=key)
            took.append(clock() - began)
    took.sort()
    return [took[len(took) // 2] / 1e3, took[len(took) * 99 // 100] / 1e3, took[-1] / 1e3]


def _middle(rounds: Sequence[Sequence[float]]) -> tuple[float, float, float]:
    p50, p99, worst = zip(*rounds, strict=True)
    return median(p50), median(p99), max(worst)


@contextmanager
def _stopped(pids: Sequence[int]) -> Iterator[None]:
    """Processes that accept connections, by their kernel, and answer nothing."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


if __name__ == "__main__":
    port, token, rounds, seconds, *pids = sys.argv[1:]
    main(int(port), token, int(rounds), int(seconds), [int(pid) for pid in pids])
