"""A client ends in time, with what it counted told: closed, forgotten, or left to the process."""

import asyncio
import gc
import threading
import time

import pytest

from switchgear import Switchgear, lifecycle
from tests.fake_console import REPORT, TOKEN, Exchange, console
from tests.quick_client import PromptClient
from tests.reporting.program_runner import environment, run
from tests.wait_helpers import our_threads, wait_until


@pytest.fixture
def there():
    with console() as made:
        yield made


def client(there, **given):
    return Switchgear(there.url, TOKEN, service="core", state_dir=None, **given)


def hang(exchange: Exchange):
    exchange.rest(60)


def hang_all(there):
    there.lie = there.report_lie = hang


def test_closed_client_has_told_all_and_has_no_thread(there):
    gear = client(there)
    assert gear.wait_ready(30)
    gear.on_change(lambda change: None)
    gear.allowed(feature="chat")
    gear.sli("core-availability").good()

    gear.close(30)

    wait_until(lambda: not our_threads())
    report = there.reports[-1]  # Counts are cumulative; a slow machine reports more than once.
    assert {"switch": "feature:chat", "allowed": 1, "blocked": 0} in report["checks"]
    assert report["sli"] == [{"slo": "core-availability", "good": 1, "total": 1}]
    assert gear.status().unreported == 0


def test_closing_again_does_nothing(there):
    gear = client(there)
    gear.close(30)
    gear.close(30)

    assert len(there.reports) == 1


def test_only_the_final_report_is_marked_as_final(there):
    gear = client(there)
    gear._reporter.request_report()
    wait_until(lambda: there.reports)
    gear.close(30)

    said = [
        asked.headers.get("switchgear-final-report")
        for asked in there.asked
        if asked.path == REPORT
    ]
    assert said[-1] == "true"
    assert set(said[:-1]) == {None}


def test_answers_stay_when_it_is_closed(there):
    there.engage("feature:chat")
    with client(there) as gear:
        assert gear.wait_ready(30)

    assert gear.allowed(feature="chat") is False


@pytest.mark.parametrize("seconds", [0.0, 0.2])
def test_console_that_hangs_delays_closing_by_no_more_than_its_seconds(there, seconds):
    hang_all(there)
    gear = client(there)
    wait_until(lambda: there.asked)

    began = time.monotonic()
    gear.close(seconds)
    took = time.monotonic() - began

    assert took < seconds + 2
    wait_until(lambda: gear.status().unreported == 1)


def test_report_that_hangs_is_broken_off_for_the_last_one(there):
    there.report_lie = hang
    gear = PromptClient(there.url, TOKEN, service="core", state_dir=None)
    assert gear.wait_ready(30)
    wait_until(lambda: there.requests_for(REPORT))
    there.report_lie = None
    gear.allowed(feature="chat")

    gear.close(4)

    assert len(there.reports) == 2
    assert gear.status().unreported == 0


def test_client_that_never_reached_its_console_closes_at_once():
    gear = Switchgear("http://127.0.0.1:9", TOKEN, state_dir=None)

    began = time.monotonic()
    gear.close(30)

    assert time.monotonic() - began < 5


def test_client_without_a_console_closes_at_once():
    began = time.monotonic()
    Switchgear(None).close(30)

    assert time.monotonic() - began < 1


def test_callback_that_closes_the_client_does_not_hang(there):
    with client(there) as gear:
        assert gear.wait_ready(30)
        closed = threading.Event()

        def close(change):
            gear.close(1)
            closed.set()

        gear.on_change(close)
        there.engage("feature:chat")
        assert closed.wait(30)


def test_event_loop_goes_on_while_a_client_closes(there):
    hang_all(there)

    async def serve():
        async with client(there) as gear:
            await asyncio.to_thread(wait_until, lambda: there.asked)
            closing = asyncio.create_task(gear.aclose(0.5))
            turns = 0
            while not closing.done():
                await asyncio.sleep(0.01)
                turns += 1
        return turns

    assert asyncio.run(serve()) >= 10


def test_forgotten_client_tells_its_counts_and_ends_its_threads(there):
    gear = client(there)
    assert gear.wait_ready(30)
    gear.allowed(feature="chat")

    del gear
    gc.collect()

    wait_until(lambda: not our_threads())
    report = there.reports[-1]  # Counts are cumulative; a slow machine reports more than once.
    assert {"switch": "feature:chat", "allowed": 1, "blocked": 0} in report["checks"]


def test_process_that_ends_tells_what_all_its_clients_counted(there, tmp_path):
    run("unclosed_clients", "3", "30", given=environment(there, tmp_path))

    last = {report["instance"]: report for report in there.reports}
    assert sorted(last) == ["i0", "i1", "i2"]
    for report in last.values():
        assert {"switch": "feature:chat", "allowed": 1, "blocked": 0} in report["checks"]


def test_console_that_hangs_delays_the_end_of_a_process_by_a_second_for_all_clients(
    there, tmp_path
):
    hang_all(there)

    said = run("unclosed_clients", "4", "0.01", given=environment(there, tmp_path))
    took = time.time() - float(said)

    assert took < 4.5


@pytest.mark.parametrize("given", [{}, {"stream": False, "reports": False}])
def test_forgotten_client_ends_all_its_threads(there, given):
    gear = client(there, **given)
    gear.on_change(print)
    assert gear.wait_ready(30)

    del gear
    gc.collect()

    wait_until(lambda: not our_threads())


def test_forgotten_client_without_a_console_ends_its_thread():
    gear = Switchgear(None)
    gear.on_change(print)

    del gear
    gc.collect()

    wait_until(lambda: not our_threads())


def test_client_can_be_closed_when_its_event_loop_has_no_threads_any_more(there):
    gear = client(there)

    async def serve():
        await asyncio.get_running_loop().shutdown_default_executor()
        await gear.aclose(30)

    asyncio.run(serve())

    assert len(there.reports) == 1
    wait_until(lambda: not our_threads())


def test_closed_client_is_known_as_long_as_it_can_be_asked():
    gc.collect()  # Clients of other tests.
    gear = Switchgear(None)
    gear.close()
    assert gear in lifecycle.all_clients()
    assert gear not in lifecycle.open_clients()
    count = len(lifecycle.all_clients())

    del gear
    gc.collect()

    assert len(lifecycle.all_clients()) == count - 1
