"""A shared pool isolates nothing; one that is too small rejects calls it could serve."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from switchgear import Bulkhead, BulkheadFull, BulkheadParameters

THREADS = 8


def hang(until: threading.Event) -> str:
    until.wait(30)
    return "slow"


def test_a_slow_dependency_takes_all_threads_of_a_shared_pool() -> None:
    healed = threading.Event()
    with ThreadPoolExecutor(THREADS) as pool:
        hanging = [pool.submit(hang, healed) for _ in range(THREADS)]
        other = pool.submit(lambda: "quick")

        with pytest.raises(TimeoutError):
            other.result(0.3)

        healed.set()
        assert other.result(30) == "quick"
        assert [each.result(30) for each in hanging] == ["slow"] * THREADS


def test_behind_a_bulkhead_it_takes_its_own_places_and_leaves_the_others_alone() -> None:
    healed = threading.Event()
    isolated = Bulkhead("core->oracle", BulkheadParameters(limit=3))(hang)
    with ThreadPoolExecutor(THREADS) as pool:
        hanging: list[Future[str]] = [pool.submit(isolated, healed) for _ in range(THREADS)]
        try:
            assert pool.submit(lambda: "quick").result(30) == "quick"
        finally:
            healed.set()

    outcomes = [each.exception(30) for each in hanging]
    assert sum(isinstance(outcome, BulkheadFull) for outcome in outcomes) == THREADS - 3


def test_how_full_it_is_can_be_seen_and_its_size_changed_while_it_is_full() -> None:
    healed = threading.Event()
    bulkhead = Bulkhead("core->oracle", BulkheadParameters(limit=2, queue=4, queue_seconds=30))
    guarded = bulkhead(hang)
    with ThreadPoolExecutor(THREADS) as pool:
        for _ in range(6):
            pool.submit(guarded, healed)
        _wait_until(lambda: bulkhead.look().queued == 4)
        assert bulkhead.look().in_flight == 2

        bulkhead.configure(BulkheadParameters(limit=6, queue=4, queue_seconds=30))
        _wait_until(lambda: bulkhead.look().in_flight == 6)

        assert bulkhead.look().queued == 0
        healed.set()
    assert bulkhead.look().in_flight == 0


def test_one_user_s_flood_leaves_places_for_others() -> None:
    healed = threading.Event()
    bulkhead = Bulkhead("core->oracle", BulkheadParameters(limit=4, per_key_limit=2))

    def ask(user: str) -> str:
        with bulkhead.of(key=user):
            return hang(healed)

    with ThreadPoolExecutor(THREADS) as pool:
        flood = [pool.submit(ask, "kim") for _ in range(5)]
        _wait_until(lambda: sum(each.done() for each in flood) == 3)
        other = pool.submit(ask, "lee")
        _wait_until(lambda: bulkhead.look().in_flight == 3)
        healed.set()

        assert other.result(30) == "slow"


def _wait_until(holds: Callable[[], bool]) -> None:
    ends = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < ends
        time.sleep(0.005)
