"""Whoever follows a stream says what it has applied."""

import dataclasses
import time

import pytest

from switchgear import Switchgear
from tests.fake_console import SNAPSHOT, TOKEN, Exchange, console
from tests.faults import another_page, errors
from tests.quick_client import QUICK
from tests.reporting.reporters import telling
from tests.wait_helpers import wait_until


@pytest.fixture
def there():
    with console() as made:
        yield made


def test_applied_version_is_acknowledged_at_once(there):
    with telling(there.url, reports=False) as told:
        told.reporter.streaming = True
        began = time.monotonic()
        told.apply(there)
        [asked] = wait_until(lambda: there.requests_for(SNAPSHOT))[-1:]

    assert asked.at - began < 1
    assert asked.method == "GET"
    assert asked.query == {}
    assert asked.headers["authorization"] == f"Bearer {TOKEN}"
    assert asked.headers["switchgear-instance"] == "core/a1"
    assert asked.headers["switchgear-applied"] == f"{there.epoch}.1"


def test_client_acknowledges_each_version_that_comes_by_the_stream(there):
    with Switchgear(there.url, TOKEN, service="core", instance="a1", state_dir=None) as gear:
        wait_until(lambda: gear.status().way == "stream")
        for _ in range(3):
            there.engage("feature:chat")
            mark = f"{there.epoch}.{there.version}"
            wait_until(
                lambda mark=mark: (
                    there.requests_for(SNAPSHOT)[-1].headers.get("switchgear-applied") == mark
                )
            )


def test_acknowledgement_asks_for_no_document(there):
    with telling(there.url, reports=False) as told:
        told.reporter.streaming = True
        told.apply(there)
        [asked] = wait_until(lambda: there.requests_for(SNAPSHOT))

    assert asked.headers["if-none-match"] == "*"


def test_instance_with_another_alphabet_is_named_in_utf_8(there):
    with telling(there.url, reports=False, service="한국", instance="é1") as told:
        told.reporter.streaming = True
        told.apply(there)
        [asked] = wait_until(lambda: there.requests_for(SNAPSHOT))

    assert asked.headers["switchgear-instance"] == "한국/é1"


def test_instance_says_that_it_is_still_there(there):
    with telling(there.url, every_seconds=0.2, reports=False) as told:
        told.reporter.streaming = True
        wait_until(lambda: len(there.requests_for(SNAPSHOT)) >= 4)

    assert all("switchgear-applied" not in one.headers for one in there.requests_for(SNAPSHOT))


def test_nothing_is_acknowledged_while_polls_do(there):
    with telling(there.url, every_seconds=0.1) as told:
        told.apply(there)
        wait_until(lambda: len(there.reports) >= 3)

    assert there.requests_for(SNAPSHOT) == []


def test_versions_in_quick_succession_share_acknowledgements(there):
    with telling(there.url, reports=False) as told:
        told.reporter.streaming = True
        began = time.monotonic()
        for _ in range(50):
            there.engage("feature:chat")
            told.apply(there)
            time.sleep(0.01)
        wait_until(
            lambda: there.requests_for(SNAPSHOT)[-1].headers["switchgear-applied"].endswith(".51")
        )
        took = time.monotonic() - began

    assert len(there.requests_for(SNAPSHOT)) <= took / 0.25 + 2


def test_acknowledgement_that_failed_is_told_again(there):
    there.lie = errors
    with telling(there.url, reports=False) as told:
        told.reporter.streaming = True
        told.apply(there)
        wait_until(lambda: there.requests_for(SNAPSHOT))
        there.lie = None
        wait_until(lambda: len(there.requests_for(SNAPSHOT)) >= 2)

    assert there.requests_for(SNAPSHOT)[-1].headers["switchgear-applied"] == f"{there.epoch}.1"


def test_version_after_an_outage_is_acknowledged_at_once(there):
    there.lie = errors
    draws = iter([0.01] * 3)  # The pause after the third failure is one of eight seconds.
    patience = dataclasses.replace(QUICK, draw=lambda: next(draws, 1.0))
    with telling(there.url, every_seconds=0.1, reports=False, patience=patience) as told:
        told.reporter.streaming = True
        wait_until(lambda: len(there.requests_for(SNAPSHOT)) >= 3)
        there.lie = None
        began = time.monotonic()
        told.apply(there)
        wait_until(lambda: "switchgear-applied" in there.requests_for(SNAPSHOT)[-1].headers)

    assert time.monotonic() - began < 1.5


def test_console_that_sends_the_whole_document_is_put_up_with(there):
    def always(exchange: Exchange) -> None:
        exchange.reply(200, b" " * 1_000_000)

    there.lie = always
    with telling(there.url, reports=False) as told:
        told.reporter.streaming = True
        for count in (1, 2):
            told.apply(there)
            wait_until(lambda count=count: len(there.requests_for(SNAPSHOT)) >= count)
            there.engage("feature:chat")


def test_clock_is_set_by_the_answers(there):
    there.ahead_seconds = 3600
    with telling(there.url, reports=False) as told:
        told.reporter.streaming = True
        told.apply(there)
        wait_until(lambda: told.store.clock.now() > time.time() + 3000)

    assert abs(told.store.clock.now() - time.time() - 3600) < 5


def test_clock_is_not_set_by_whoever_else_answers(there):
    there.ahead_seconds = 3600
    there.lie = there.report_lie = another_page
    with telling(there.url, every_seconds=0.2) as told:
        told.reporter.streaming = True
        told.apply(there)
        wait_until(lambda: len(there.requests_for(SNAPSHOT)) > 1 and told.reporter.unreported)

    assert abs(told.store.clock.now() - time.time()) < 60
