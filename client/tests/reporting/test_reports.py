"""Reports of counts and SLIs, in the background."""

import itertools
import json
import logging
import time
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

import pytest

from controlplane.dataplane.ingest.report_merge import parse_report
from switchgear.clock import ConsoleClock
from switchgear.console.report_builder import ReportBuilder
from switchgear.evaluation.decision_counts import MAX_SWITCHES
from switchgear.settings import Settings
from switchgear.sli import MAX_NAMES
from switchgear.testing import FakeClock
from tests.fake_console import REPORT, TOKEN, Exchange, console
from tests.faults import errors, forbids
from tests.quick_client import QUICK, PromptClient
from tests.reporting.reporters import telling
from tests.wait_helpers import our_threads, wait_until


@pytest.fixture
def there():
    with console() as made:
        yield made


def test_report_has_what_the_contract_names(there):
    with telling(there.url, every_seconds=0.1) as told:
        told.apply(there)
        wait_until(lambda: len(there.reports) >= 2)

    first, second = there.reports[:2]
    assert (first["service"], first["instance"]) == ("core", "a1")
    assert UUID(first["boot"]) == UUID(second["boot"])
    assert (first["seq"], second["seq"]) == (1, 2)
    assert second["applied_version"] == 1
    assert "config_version" not in first
    sent_at = datetime.fromisoformat(second["sent_at"])
    began = [datetime.fromisoformat(one["started_at"]) for one in (first, second)]
    assert timedelta() <= sent_at - began[1] < timedelta(minutes=1)
    # The first one was sent before the console's clock was known.
    assert abs(began[0] - began[1]) < timedelta(seconds=2)
    [asked] = there.requests_for(REPORT)[:1]
    assert asked.headers["content-type"] == "application/json"
    assert asked.headers["authorization"] == f"Bearer {TOKEN}"


def test_counts_are_those_since_the_boot(there):
    with telling(there.url, every_seconds=0.1) as told:
        there.engage("feature:chat")
        told.apply(there)
        for _ in range(3):
            told.store.decide(None, "chat", (), None)
            told.store.decide("finance", None, (), None)
        told.indicators.get("core-availability").add(good=9, total=10)
        wait_until(lambda: len(there.reports) >= 2 and there.reports[-1]["sli"])
        told.store.decide(None, "chat", (), None)

    checks = {
        one["switch"]: (one["allowed"], one["blocked"]) for one in there.reports[-1]["checks"]
    }
    assert checks == {"global:all": (4 + 3, 0), "segment:finance": (3, 0), "feature:chat": (0, 4)}
    assert there.reports[-1]["sli"] == [{"slo": "core-availability", "good": 9, "total": 10}]


def test_last_report_has_what_was_counted_until_then(there):
    with telling(there.url) as told:
        told.store.decide("finance", None, (), None)

    [report] = there.reports
    assert {"switch": "segment:finance", "allowed": 1, "blocked": 0} in report["checks"]
    assert told.reporter.unreported == 0


def test_console_reads_what_was_reported(there):
    with telling(there.url) as told:
        told.apply(there)
        told.store.decide("finance", "chat", ("a", "b"), None)
        told.indicators.get("core-availability").add(good=9, total=10)

    read = parse_report(there.reports[0])
    assert (read.service, read.instance, read.seq, read.applied_version) == ("core", "a1", 1, 1)
    assert len(read.checks) == 5
    assert read.sli == {"core-availability": (9, 10)}


def test_largest_report_fits_what_the_console_takes(there):
    with telling(there.url) as told:
        for number in range(2 * MAX_SWITCHES):
            told.store.decide(None, f"{number:0120}", (), None)
        for number in range(2 * MAX_NAMES):
            told.indicators.get(f"{number:04}" + "한" * 65).good()

    [asked] = there.requests_for(REPORT)
    report = json.loads(asked.body)
    parse_report(report)
    assert len(asked.body) <= 512 * 1024
    assert (len(report["checks"]), len(report["sli"])) == (1000, MAX_NAMES)


def test_reports_that_failed_are_counted_and_nothing_is_lost(there):
    there.report_lie = errors
    with telling(there.url, every_seconds=0.1) as told:
        told.store.decide("finance", None, (), None)
        wait_until(lambda: told.reporter.unreported >= 2)
        told.store.decide("finance", None, (), None)
        there.report_lie = None
        known = len(there.reports)
        wait_until(lambda: len(there.reports) > known + 1)

    *_, last = there.reports
    assert {"switch": "segment:finance", "allowed": 2, "blocked": 0} in last["checks"]
    seqs = [one["seq"] for one in there.reports]
    assert seqs == sorted(set(seqs))


def test_console_that_fails_is_asked_ever_less(there):
    there.report_lie = errors
    with telling(there.url, every_seconds=0.01, patience=replace(QUICK, draw=lambda: 0.01)):
        wait_until(lambda: len(there.reports) >= 5)
        sent = [one.at for one in there.requests_for(REPORT)[:5]]

    pauses = [after - before for before, after in itertools.pairwise(sent)]
    # The first is drawn from two seconds, and each further one from twice as many.
    assert all(pause > 0.015 * 2**n for n, pause in enumerate(pauses))


def test_token_that_may_not_report_is_named_once_and_left_in_peace(there, caplog):
    there.report_lie = forbids
    with (
        caplog.at_level(logging.WARNING, "switchgear"),
        telling(there.url, every_seconds=0.05) as told,
    ):
        wait_until(lambda: there.reports)
        time.sleep(0.3)
        asked = len(there.reports)

    assert asked == 1
    [record] = caplog.records
    assert "report:write, or another team owns the service" in record.getMessage()
    assert TOKEN not in caplog.text
    assert told.reporter.unreported == 2


def test_client_whose_reports_are_refused_still_follows_the_switches(there):
    there.report_lie = forbids
    with PromptClient(there.url, TOKEN, service="core") as gear:
        wait_until(lambda: there.reports, 5)

        there.engage("feature:chat")

        wait_until(lambda: not gear.allowed(feature="chat"), 5)


def test_report_is_not_sent_before_the_console_wants_it(there):
    def later(exchange: Exchange) -> None:
        exchange.reply(429, retry_after="30")

    there.report_lie = later
    with telling(there.url, every_seconds=0.05):
        wait_until(lambda: there.reports)
        time.sleep(0.3)
        asked = len(there.reports)

    assert asked == 1


def test_hung_console_is_given_up_and_others_are_not_held_up(there):
    def hang(exchange: Exchange) -> None:
        exchange.rest(60)

    there.report_lie = hang
    patience = replace(QUICK, report_answer=0.3)
    with telling(there.url, every_seconds=0.05, stop_seconds=0.1, patience=patience) as told:
        wait_until(lambda: there.reports)
        began = time.monotonic()
        for _ in range(1000):
            told.store.decide("finance", None, (), None)
            told.indicators.get("core-availability").good()
        took = time.monotonic() - began
        wait_until(lambda: told.reporter.unreported == 1)

    assert took < 1


@pytest.mark.parametrize("wall", [-1e15, 1e15])
def test_clock_that_is_out_of_all_bounds_stops_no_report(wall):
    settings = Settings(url=None, service="core", instance="a1")
    report = json.loads(ReportBuilder(settings, ConsoleClock(FakeClock(wall)), ()).build_next())

    parse_report(report)


def test_client_that_shall_not_report_does_not(there):
    with telling(there.url, every_seconds=0.05, reports=False):
        time.sleep(0.3)

    assert there.reports == []


def test_stopped_courier_has_no_thread(there):
    with telling(there.url):
        assert "switchgear-reporter" in our_threads()

    assert "switchgear-reporter" not in our_threads()


@pytest.mark.parametrize(("name_length", "has_orders"), [(10, True), (400_000, False)])
def test_orders_are_left_out_of_a_report_that_would_be_too_large(name_length, has_orders):
    settings = Settings(url=None, service="core", instance="a1")
    orders = [str(UUID(int=number)) for number in range(5000)]
    sources = [lambda: {"applied_orders": orders}, lambda: {"other": "x" * name_length}]
    reports = ReportBuilder(settings, ConsoleClock(FakeClock()), sources)

    report = reports.build_next()

    assert len(report) <= 512 * 1024
    assert ("applied_orders" in json.loads(report)) is has_orders
