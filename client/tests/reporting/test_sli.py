"""Events of SLOs, counted in a service."""

import asyncio
import concurrent.futures
import inspect
import logging
import threading
import time
import tracemalloc

import pytest

from switchgear import SwitchEngaged
from switchgear.sli import MAX_EVENTS, MAX_NAMES, SLI, Indicators


@pytest.fixture
def sli():
    return SLI("core-availability")


def test_events_that_were_counted_are_all_there(sli):
    sli.good()
    sli.bad()
    sli.add(good=3, total=5)

    assert sli.get_counts() == (4, 7)


def test_many_threads_lose_no_event(sli):
    def count():
        for _ in range(5_000):
            sli.good()
            sli.bad()
            sli.add(good=1, total=2)

    threads = [threading.Thread(target=count) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sli.get_counts() == (80_000, 160_000)


def test_counts_read_meanwhile_fit_each_other(sli):
    ended = threading.Event()

    def count():
        while not ended.is_set():
            sli.good()

    thread = threading.Thread(target=count)
    thread.start()
    try:
        seen = [sli.get_counts() for _ in range(2_000)]
    finally:
        ended.set()
        thread.join()

    assert all(good == total for good, total in seen)


@pytest.mark.parametrize(
    ("good", "total"), [(2, 1), (-1, 1), (0, -1), (1.0, 2), ("1", 2), (None, None)]
)
def test_counts_that_cannot_be_are_left_out_and_logged_once(sli, caplog, good, total):
    with caplog.at_level(logging.WARNING, "switchgear"):
        sli.add(good, total)
        sli.add(good, total)

    assert sli.get_counts() == (0, 0)
    [record] = caplog.records
    assert "core-availability" in record.getMessage()


def test_more_events_than_json_can_hold_are_left_out(sli):
    sli.add(MAX_EVENTS, MAX_EVENTS)
    sli.bad()

    assert sli.get_counts() == (MAX_EVENTS, MAX_EVENTS)
    assert sli.dropped == 1


def test_measured_block_is_one_good_event(sli):
    with sli.measure():
        pass

    assert sli.get_counts() == (1, 1)


def test_measured_block_that_raises_is_a_bad_event(sli):
    with pytest.raises(ConnectionResetError), sli.measure():
        raise ConnectionResetError

    assert sli.get_counts() == (0, 1)


@pytest.mark.parametrize(
    "error",
    [
        SwitchEngaged("feature:chat", "too many complaints"),
        asyncio.CancelledError(),
        concurrent.futures.CancelledError(),
        GeneratorExit(),
        KeyboardInterrupt(),
        ExceptionGroup("", [SwitchEngaged("feature:chat"), SwitchEngaged("global:all")]),
        BaseExceptionGroup("", [asyncio.CancelledError(), SwitchEngaged("feature:chat")]),
    ],
)
def test_what_nobody_failed_at_is_no_event(sli, error):
    with pytest.raises(type(error)), sli.measure():
        raise error

    assert sli.get_counts() == (0, 0)


def test_group_in_which_anything_failed_is_a_bad_event(sli):
    group = ExceptionGroup("", [SwitchEngaged("feature:chat"), ValueError()])

    with pytest.raises(ExceptionGroup), sli.measure():
        raise group

    assert sli.get_counts() == (0, 1)


class HTTPException(Exception):
    """An error with a status, like FastAPI's."""

    def __init__(self, status_code):
        self.status_code = status_code


def is_server_error(error):
    return error.status_code >= 500


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (HTTPException(404), (1, 1)),
        (HTTPException(500), (0, 1)),
        (ExceptionGroup("", [HTTPException(404), HTTPException(409)]), (1, 1)),
        (ExceptionGroup("", [HTTPException(404), HTTPException(500)]), (0, 1)),
        (ValueError("without a status, so is_failure raises"), (0, 1)),
        (SwitchEngaged("feature:chat"), (0, 0)),
    ],
)
def test_error_is_a_bad_event_if_is_failure_says_so(sli, error, expected):
    @sli.measure(is_failure=is_server_error)
    def fail():
        raise error

    with pytest.raises(type(error)):
        fail()

    assert sli.get_counts() == expected


def test_error_that_is_no_failure_must_still_come_in_time(sli):
    @sli.measure(within_seconds=0.0, is_failure=is_server_error)
    def fail():
        time.sleep(0.001)
        raise HTTPException(404)

    with pytest.raises(HTTPException):
        fail()

    assert sli.get_counts() == (0, 1)


def test_what_takes_longer_than_it_may_is_a_bad_event(sli):
    with sli.measure(within_seconds=0.01):
        time.sleep(0.2)
    with sli.measure(within_seconds=60):
        pass

    assert sli.get_counts() == (1, 2)


@pytest.mark.parametrize("wrong", ["3", True, [3]])
def test_limit_that_is_no_number_is_refused_before_anything_is_measured(sli, wrong):
    with pytest.raises(TypeError, match="within_seconds must be a number"):
        sli.measure(within_seconds=wrong)


def test_decorated_function_is_measured_at_each_call(sli):
    @sli.measure()
    def halved(number: int) -> int:
        if number % 2:
            raise KeyError(number)
        return number // 2

    with pytest.raises(KeyError):
        halved(3)

    assert halved(4) == 2
    assert sli.get_counts() == (1, 2)
    assert halved.__name__ == "halved"
    assert list(inspect.signature(halved).parameters) == ["number"]


def test_decorated_function_with_a_limit_may_call_itself(sli):
    @sli.measure(within_seconds=0.3)
    def down(depth: int) -> None:
        if depth:
            time.sleep(0.2)
            down(depth - 1)

    down(2)

    assert sli.get_counts() == (2, 3)


def test_decorated_coroutine_function_is_measured_when_it_is_awaited(sli):
    @sli.measure()
    async def answer_measured(fails: bool) -> str:
        await asyncio.sleep(0)
        if fails:
            raise KeyError
        return "yes"

    async def ask():
        unawaited = answer_measured(False)
        before = sli.get_counts()
        answer = await unawaited
        with pytest.raises(KeyError):
            await answer_measured(True)
        return before, answer

    assert inspect.iscoroutinefunction(answer_measured)
    assert asyncio.run(ask()) == ((0, 0), "yes")
    assert sli.get_counts() == (1, 2)


def test_cancelled_coroutine_is_no_event(sli):
    @sli.measure()
    async def answer_measured() -> None:
        await asyncio.sleep(60)

    async def ask():
        task = asyncio.create_task(answer_measured())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])

    asyncio.run(ask())

    assert sli.get_counts() == (0, 0)


def test_name_gives_the_same_sli_each_time():
    indicators = Indicators()

    indicators.get("a").good()
    indicators.get("a").bad()

    assert indicators.get_counts() == {"a": (1, 2)}


@pytest.mark.parametrize("name", ["", "a\x00b", "x" * 201, "\ud800", None, 5, ["a"]])
def test_what_is_no_name_is_counted_as_dropped(name, caplog):
    indicators = Indicators()

    indicators.get(name).good()

    assert indicators.get_counts() == {}
    assert indicators.dropped == 1
    assert len(caplog.records) == 1


def test_names_without_end_fill_no_memory_and_are_counted_as_dropped(caplog):
    indicators = Indicators()
    for number in range(MAX_NAMES):
        indicators.get(f"slo-{number}").good()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number in range(MAX_NAMES, 20_000):
            indicators.get(f"slo-{number}").good()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert after - before < 200_000
    assert len(indicators.get_counts()) == MAX_NAMES
    assert indicators.dropped == 20_000 - MAX_NAMES
    assert len(caplog.records) == 20


def test_child_of_a_fork_counts_from_nought_with_what_it_holds():
    indicators = Indicators()
    held = indicators.get("a")
    held.good()

    indicators.after_fork()
    held.bad()

    assert indicators.get_counts() == {"a": (0, 1)}
