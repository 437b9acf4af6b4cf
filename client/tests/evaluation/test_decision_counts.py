"""Calls are counted exactly, by any number of threads, in bounded memory."""

import json
import threading
import uuid

from switchgear.clock import ConsoleClock
from switchgear.evaluation import snapshot
from switchgear.evaluation.decision_counts import MAX_SWITCHES
from switchgear.evaluation.snapshot_store import MAX_CACHED_QUERIES, SnapshotStore
from switchgear.testing import Console, FakeClock

THREADS = 8
CALLS = 5_000


def snapshot_of(version: int, *switches: str) -> snapshot.Snapshot:
    rows = [{"id": switch, "state": "engaged", "reason": "why"} for switch in switches]
    document = {"schema": 1, "epoch": str(uuid.UUID(int=1)), "version": version, "switches": rows}
    return snapshot.parse_snapshot(json.dumps(document).encode())


def test_only_the_switch_that_decided_has_blocked() -> None:
    client = Console().client()
    client.allowed(segment="finance", feature="chat")
    console = Console()
    console.engage("segment:finance")
    console.engage("feature:chat")
    client = console.client()

    client.allowed(segment="finance", feature="chat", experiments="blue")
    client.check(feature="chat")

    assert client._store.switch_counts() == {
        "global:all": (2, 0),
        "segment:finance": (0, 1),
        "feature:chat": (1, 1),
        "experiment:blue": (1, 0),
    }


def test_every_call_of_every_thread_is_counted_once_while_the_snapshot_changes() -> None:
    console = Console()
    client = console.client()
    begun = threading.Barrier(THREADS + 1)
    blocked = [0] * THREADS

    def ask(number: int) -> None:
        begun.wait()
        for call in range(CALLS):
            key = f"user-{call}" if call % 3 == 0 else None
            if not client.allowed(feature="chat", targeting_key=key):
                blocked[number] += 1

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    begun.wait()
    for percent in range(1, 60):
        console.engage("feature:chat")
        client.status()
        console.ramp("feature:chat", percent)
        client._store.switch_counts()
        console.release("feature:chat")
    for thread in threads:
        thread.join()

    # A call that was being counted just as its answer was replaced is found by the next look.
    counted = client._store.switch_counts()
    assert counted["feature:chat"] == (THREADS * CALLS - sum(blocked), sum(blocked))
    assert sum(counted["global:all"]) == THREADS * CALLS


def test_counts_are_complete_when_answers_are_thrown_away_for_want_of_room() -> None:
    store = SnapshotStore(ConsoleClock(FakeClock()))
    store.accept(snapshot_of(1))

    for number in range(2 * MAX_CACHED_QUERIES):
        store.decide(None, ("chat", f"f{number}"), (), None)

    assert store.switch_counts()["feature:chat"] == (2 * MAX_CACHED_QUERIES, 0)


def test_switches_beyond_the_report_limit_are_dropped_and_counted() -> None:
    store = SnapshotStore(ConsoleClock(FakeClock()))
    store.accept(snapshot_of(1))

    for number in range(MAX_SWITCHES + 500):
        store.decide(None, f"f{number}", (), None)

    counted = store.switch_counts()
    assert len(counted) == MAX_SWITCHES
    assert counted["global:all"] == (MAX_SWITCHES + 500, 0)
    assert store.counts.dropped == 501


def test_switch_that_blocks_takes_the_place_of_one_that_never_has() -> None:
    store = SnapshotStore(ConsoleClock(FakeClock()))
    store.accept(snapshot_of(1, "feature:chat", "feature:search"))
    for number in range(MAX_SWITCHES - 1):
        store.decide(None, f"f{number}", (), None)
    store.switch_counts()

    store.decide(None, "chat", (), None)
    store.decide("finance", "search", (), None)
    counted = store.switch_counts()

    assert len(counted) == MAX_SWITCHES
    assert (counted["feature:chat"], counted["feature:search"]) == ((0, 1), (0, 1))
    assert counted["global:all"] == (MAX_SWITCHES + 1, 0)
    assert store.counts.dropped == 3


def test_call_dependent_decisions_are_counted_by_decision() -> None:
    console = Console()
    client = console.client()
    console.ramp("feature:chat", 50)
    console.ramp("segment:finance", 50)

    decisions = [
        client.check(segment="finance", feature="chat", targeting_key=f"u{n}") for n in range(200)
    ]

    blocked = {
        each: sum(one.switch == each for one in decisions)
        for each in ("segment:finance", "feature:chat")
    }
    assert all(blocked.values())
    assert client._store.switch_counts() == {
        "global:all": (200, 0),
        **{each: (200 - number, number) for each, number in blocked.items()},
    }


def test_counts_are_reset_in_a_child() -> None:
    store = SnapshotStore(ConsoleClock(FakeClock()))
    store.accept(snapshot_of(1, "feature:chat"))
    store.decide(None, "chat", (), None)

    store.after_fork()
    store.decide(None, "chat", (), None)

    assert store.switch_counts()["feature:chat"] == (0, 1)


def test_looking_at_the_counts_does_not_change_them() -> None:
    console = Console()
    client = console.client()
    for _ in range(5):
        client.allowed(feature="chat")

    counts = [client._store.switch_counts()["feature:chat"] for _ in range(4)]

    assert counts == [(5, 0)] * 4
