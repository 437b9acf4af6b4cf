"""Measures the client's `allowed()`, beside flag libraries, and while the console hangs.

Run as a process of its own: `python -m bench.switch_checks PORT TOKEN ROUNDS SECONDS PID…`. Fetches
the switches once from the data plane on `PORT`, and then checks them in memory. The data plane's
processes `PID…` are paused and resumed. Prints one JSON line.
"""

import gc
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

from switchgear import Switchgear
from switchgear.testing import Console

from . import fixtures, flag_libraries, load_processes
from .flag_libraries import Keys, Peer
from .servers import HOST, ServerUnderTest

STOPPED = 1000
RAMPING = fixtures.switch_key(STOPPED)
BATCH_SECONDS = 0.05
DEPARTMENTS = 12
HANGS = 3
NOTICED_SECONDS = 60.0
"""Timeout for the client to notice that the console is paused, or that it is back.

A stream may be silent for 20 s.
"""
LOOK_SECONDS = 0.1
READY_SECONDS = 20.0
PATIENCE_SECONDS = 60


@dataclass(frozen=True)
class CheckCosts:
    """The costs of a check of one switch, in microseconds.

    Medians: `micros` for `allowed()` and each other library, `check` for `check()`, `ramping` for
    ramping switches, `releasing` for switches that release at expiry. The others are p50, p99 and
    worst of single calls: `honest` with a healthy console, `hanging` with one known to hang,
    `crowded` with more combinations of keys (their number is `questions`) than the client's cache
    holds.
    """

    micros: dict[str, float]
    check: float
    ramping: float
    releasing: float
    honest: tuple[float, float, float]
    hanging: tuple[float, float, float]
    crowded: tuple[float, float, float]
    questions: int


def create_switches() -> None:
    """Engage a thousand switches, and let one more ramp; call before a data plane starts."""
    from switches.models import Episode

    fixtures.create_switches(STOPPED + 2, STOPPED + 2)
    Episode.objects.filter(switch_id=f"feature:{RAMPING}").update(allow_percent=50)


def measure(plane: ServerUnderTest, token: str, rounds: int, seconds: int) -> CheckCosts:
    """Run :func:`main` in another process, on this process's CPU core, and return its results."""
    arguments = (plane.port, token, rounds, seconds, *plane.pids())
    patience = PATIENCE_SECONDS + rounds * seconds * 4 + HANGS * NOTICED_SECONDS * 2
    with load_processes.running("bench.switch_checks", *arguments) as asking:
        return CheckCosts(**asking.line(patience, "questions of a service"))


def main(port: int, token: str, rounds: int, seconds: int, pids: Sequence[int]) -> None:
    engaged = [fixtures.switch_key(n) for n in range(STOPPED)]
    free = [f"{key}-not" for key in engaged]
    keys = [*engaged, *free]
    random.Random(1).shuffle(keys)
    url = f"http://{HOST}:{port}"
    with Switchgear(url, token, service="bench", state_dir=None) as gear:
        if not gear.wait_ready(READY_SECONDS):
            raise SystemExit(f"bench: the client hears nothing of the console: {gear.status()}")
        with flag_libraries.ready(engaged, free) as others:
            alike = [_ours(gear), _ours_checked(gear), _check_releasing(engaged), *others]
            verify(gear, alike, keys, set(engaged))
            micros = compare_libraries([*alike, _check_ramping(gear)], keys, rounds)
        honest, hanging = measure_disturbed(gear, keys, min(rounds, HANGS), seconds, pids)
        questions = [(f"department-{n}", key) for key in keys[::2] for n in range(DEPARTMENTS)]
        random.Random(2).shuffle(questions)
        crowded = _middle([_time_calls(gear, questions, seconds) for _ in range(rounds)])
    found = CheckCosts(
        check=micros.pop("check"),
        ramping=micros.pop("ramping"),
        releasing=micros.pop("releasing"),
        micros=micros,
        honest=honest,
        hanging=hanging,
        crowded=crowded,
        questions=len(questions),
    )
    print(json.dumps(asdict(found)), flush=True)


def verify(gear: Switchgear, peers: Sequence[Peer], keys: Keys, engaged: set[str]) -> None:
    """End the run unless all libraries give the correct answer for each key."""
    for peer in peers:
        wrong = [key for key in keys if peer.ask(key) != (key not in engaged)]
        if wrong:
            raise SystemExit(f"bench: {peer.name} is wrong of {len(wrong)} keys: {wrong[:3]}")
    answers = {gear.allowed(feature=RAMPING, targeting_key=f"user-{n}") for n in range(100)}
    if answers != {True, False}:
        raise SystemExit(f"bench: the switch that should ramp says {answers} to everybody")


def compare_libraries(peers: Sequence[Peer], keys: Keys, rounds: int) -> dict[str, float]:
    """Return the microseconds per check by library, the medians of interleaved rounds."""
    times = {peer.name: max(1, round(BATCH_SECONDS / _seconds(peer, keys, 1))) for peer in peers}
    took: dict[str, list[float]] = {peer.name: [] for peer in peers}
    for _ in range(rounds * 2):
        for peer in peers:
            seconds = _seconds(peer, keys, times[peer.name])
            took[peer.name].append(seconds / times[peer.name] / len(keys) * 1e6)
    return {name: median(each) for name, each in took.items()}


def measure_disturbed(
    gear: Switchgear, keys: Keys, rounds: int, seconds: int, pids: Sequence[int]
) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    """Return p50, p99 and worst of single `allowed()` calls, with a healthy and a hanging console.

    The client needs a while to notice that the paused console hangs; only then is it measured.
    """
    questions = [(None, key) for key in keys]
    well, hanging = [], []
    for _ in range(rounds):
        well.append(_time_calls(gear, questions, seconds))
        with _stopped(pids):
            _await(gear, hears=False)
            hanging.append(_time_calls(gear, questions, seconds))
            if gear.status().error is None:
                raise SystemExit("bench: the client hears a console that is stopped")
        _await(gear, hears=True)
    return _middle(well), _middle(hanging)


def _await(gear: Switchgear, *, hears: bool) -> None:
    until = time.monotonic() + NOTICED_SECONDS
    while (gear.status().error is None) != hears:
        if time.monotonic() > until:
            raise SystemExit(f"bench: after {NOTICED_SECONDS:.0f} s still {gear.status()}")
        time.sleep(LOOK_SECONDS)


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


def _check_ramping(gear: Switchgear) -> Peer:
    """Return a check of one ramping switch, in which each key is a user's targeting key."""

    def ask(key: str) -> bool:
        return gear.allowed(feature=RAMPING, targeting_key=key)

    def ask_all(keys: Keys) -> None:
        for key in keys:
            gear.allowed(feature=RAMPING, targeting_key=key)

    return Peer("ramping", ask, ask_all)


def _check_releasing(engaged: Keys) -> Peer:
    """Return a check of switches that release at expiry: each answer depends on the time."""
    console = Console()
    for key in engaged:
        console.engage(f"feature:{key}", on_expiry="release")
    gear = console.client(service="bench")

    def ask_all(keys: Keys) -> None:
        for key in keys:
            gear.allowed(feature=key)

    return Peer("releasing", lambda key: gear.allowed(feature=key), ask_all)


def _seconds(peer: Peer, keys: Keys, times: int) -> float:
    gc.collect()
    began = time.perf_counter()
    for _ in range(times):
        peer.ask_all(keys)
    return time.perf_counter() - began


def _time_calls(
    gear: Switchgear, questions: Sequence[tuple[str | None, str]], seconds: float
) -> list[float]:
    """Return p50, p99 and worst of single `allowed()` calls, in microseconds.

    Each call checks one pair of a segment and a feature from `questions`; all are checked.
    """
    took: list[int] = []
    clock = time.perf_counter_ns
    gc.collect()
    until = clock() + int(seconds * 1e9)
    while clock() < until:
        for segment, feature in questions:
            began = clock()
            gear.allowed(segment=segment, feature=feature)
            took.append(clock() - began)
    took.sort()
    return [took[len(took) // 2] / 1e3, took[len(took) * 99 // 100] / 1e3, took[-1] / 1e3]


def _middle(rounds: Sequence[Sequence[float]]) -> tuple[float, float, float]:
    p50, p99, worst = zip(*rounds, strict=True)
    return median(p50), median(p99), max(worst)


@contextmanager
def _stopped(pids: Sequence[int]) -> Iterator[None]:
    """Context manager: pause processes, so that connections are accepted but get no response."""
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
