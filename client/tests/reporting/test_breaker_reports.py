"""Reports of breakers and bulkheads; no transition is lost."""

import itertools
import json
import logging
import time
from datetime import UTC, datetime, timedelta

import pytest

from controlplane.dataplane.ingest.report_fields import validate_report
from switchgear import BreakerParameters, BulkheadParameters
from switchgear.clock import ConsoleClock, SystemTime
from switchgear.policies.registry import MAX_BREAKERS, MAX_BULKHEADS, Registry
from switchgear.policies.resilience_report import MAX_TRANSITIONS, ResilienceReport
from tests.fake_console import REPORT, Exchange, console
from tests.faults import errors
from tests.policies.policy_clients import NAME, following, wait_for_version
from tests.wait_helpers import wait_until

FIRST = BreakerParameters(failure_count=1)


@pytest.fixture
def there():
    with console() as made:
        yield made


def trip(breaker):
    breaker.fail(breaker.admit(), TimeoutError("too slow"), 0.1)


def latest_entry(there, name=NAME):
    """Return the latest report's entry of that breaker."""
    rows = [one for report in there.reports[-1:] for one in report.get("breakers", [])]
    return next((one for one in rows if one["dependency"] == name), None)


def steps(there, name=NAME):
    """All transitions that were ever told, by number."""
    return {
        step["n"]: step
        for report in there.reports
        for one in report.get("breakers", [])
        if one["dependency"] == name
        for step in one["transitions"]
    }


def test_breaker_is_told_as_the_console_reads_it(there):
    there.configure(NAME, bulkhead={"limit": 7, "queue": 2})
    with following(there) as gear:
        policy = gear.policy(NAME, breaker=FIRST, fallback=lambda: 0)
        wait_for_version(gear, 2)
        began = datetime.now(UTC)
        policy(lambda: 1)()
        trip(policy.breaker)
        policy(lambda: 1)()
        wait_until(lambda: (latest_entry(there) or {}).get("state") == "open")

    report = validate_report(there.reports[-1])
    [breaker] = report["breakers"]
    assert breaker["counters"] == {
        "success": 1, "failure": 0, "timeout": 1, "slow": 0, "rejected": 1, "fallback": 1,
        "retry": 0,
    }  # fmt: skip
    assert (breaker["state"], breaker["mode"], breaker["calls"]) == ("open", "normal", 2)
    assert "failure_rate" not in breaker
    assert timedelta(seconds=-2) < breaker["since"] - began < timedelta(seconds=20)
    [step] = steps(there).values()
    assert (step["n"], step["from"], step["to"]) == (1, "closed", "open")
    assert step["cause"] == "failure_count 1 >= 1"
    assert report["bulkheads"] == [
        {"name": NAME, "in_flight": 0, "limit": 7, "queued": 0, "queue_limit": 2, "rejected": 0}
    ]
    assert report["config_version"] == 2


def test_opening_is_told_at_once_and_not_with_the_next_report(there):
    with following(there) as gear:
        breaker = gear.breaker(NAME, parameters=FIRST)
        wait_until(lambda: latest_entry(there))
        began = time.monotonic()
        trip(breaker)
        wait_until(lambda: latest_entry(there)["state"] == "open")

        assert time.monotonic() - began < 1


def test_many_changes_are_told_together_and_not_each_alone(there):
    with following(there) as gear:
        breaker = gear.breaker(NAME, parameters=FIRST)
        for _ in range(30):
            trip(breaker)
            breaker.reset()
            time.sleep(0.02)
        wait_until(lambda: len(steps(there)) == 60)
        sent = [one.at for one in there.requests_for(REPORT)]

    assert list(steps(there)) == list(range(1, 61))
    assert len(sent) < 12
    # Each is sent so long after the one before; on its way it may take more or less.
    assert all(after - before > 0.15 for before, after in itertools.pairwise(sent[:-1]))


def of_breaker(there):
    """Return the transitions of the first breaker in each report about breakers."""
    return [one["breakers"][0]["transitions"] for one in there.reports if "breakers" in one]


def test_transitions_are_reported_again_until_a_report_was_accepted(there):
    there.report_lie = errors
    with following(there) as gear:
        trip(gear.breaker(NAME, parameters=FIRST))
        wait_until(lambda: len([each for each in of_breaker(there) if each]) >= 2)
        there.report_lie = None
        count = len(there.reports)
        wait_until(lambda: len(there.reports) > count)
        trip(gear.breaker("core->synapse", parameters=FIRST))
        wait_until(lambda: latest_entry(there, "core->synapse"))

    of_first = list(itertools.dropwhile(lambda steps: not steps, of_breaker(there)))
    assert [len(each) for each in of_first[:3]] == [1, 1, 1]
    assert of_first[-1] == []
    assert len({step["at"][:19] for each in of_first for step in each}) <= 2


def test_busy_console_is_not_urged(there):
    def later(exchange: Exchange) -> None:
        exchange.reply(429, retry_after="30")

    there.report_lie = later
    with following(there) as gear:
        breaker = gear.breaker(NAME, parameters=FIRST)
        for _ in range(10):
            trip(breaker)
            breaker.reset()
            time.sleep(0.04)

        assert len(there.reports) == 1


def test_override_is_acknowledged_at_once(there):
    with following(there) as gear:
        breaker = gear.breaker(NAME)
        wait_for_version(gear, 1)
        there.override(NAME, "disabled")
        began = time.monotonic()
        wait_until(lambda: (latest_entry(there) or {}).get("mode") == "disabled")

        assert there.reports[-1]["config_version"] == 2
        assert time.monotonic() - began < 1.5
        assert breaker.mode == "disabled"


def test_times_are_by_the_clock_of_the_console():
    with console(ahead_seconds=7200) as there, following(there) as gear:
        breaker = gear.breaker(NAME, parameters=FIRST)
        assert gear.wait_ready()
        trip(breaker)
        wait_until(lambda: steps(there))

    at = datetime.fromisoformat(steps(there)[1]["at"])
    assert abs(at - datetime.now(UTC) - timedelta(hours=2)) < timedelta(seconds=30)


def test_name_that_is_no_dependency_is_not_told(there):
    with following(there) as gear:
        gear.policy("neo4j")(lambda: 1)()
        gear.breaker(NAME)
        gear.bulkhead("core->synapse", BulkheadParameters(limit=2))
        wait_until(lambda: there.reports)

    report = validate_report(there.reports[-1])
    assert [one["dependency"] for one in report["breakers"]] == [NAME]
    assert [one["name"] for one in report["bulkheads"]] == ["core->synapse"]


def test_service_that_calls_nobody_tells_of_no_breakers(there):
    with following(there):
        pass

    assert not {"breakers", "bulkheads", "config_version"} & there.reports[-1].keys()


def test_largest_report_is_one_that_the_console_takes(caplog):
    caplog.set_level(logging.CRITICAL, "switchgear")
    registry = Registry(ConsoleClock(SystemTime()))
    for number in range(MAX_BREAKERS + 50):
        dependency = registry.get_dependency(f"{number:060}->{'b' * 60}")
        breaker = dependency.get_breaker(parameters=FIRST)
        dependency.get_bulkhead(BulkheadParameters(limit=2))
        for _ in range(4):
            trip(breaker)
            breaker.reset()
    reporting = ResilienceReport(registry, ConsoleClock(SystemTime()), "core")

    fields = reporting()
    seen = sum(len(one["transitions"]) for one in fields["breakers"])
    identity = {"service": "core", "instance": "a", "boot": "0e5d5c1e-77a8-4d1a-a1c1-5b7f7d6f0b41"}
    report = validate_report({**identity, "seq": 1, **fields})
    assert (len(report["breakers"]), len(report["bulkheads"])) == (MAX_BREAKERS, MAX_BULKHEADS)
    assert seen == MAX_TRANSITIONS
    assert len(json.dumps(fields, separators=(",", ":"))) < 400_000
    while reporting.confirm_delivery():
        seen += sum(len(one["transitions"]) for one in reporting()["breakers"])
    assert seen == MAX_BREAKERS * 8


def test_of_very_many_transitions_the_oldest_are_dropped():
    registry = Registry(ConsoleClock(SystemTime()))
    breaker = registry.get_dependency(NAME).get_breaker(parameters=FIRST)
    for _ in range(100):
        trip(breaker)
        breaker.reset()

    [told_of] = ResilienceReport(registry, ConsoleClock(SystemTime()), "core")()["breakers"]

    assert [step["n"] for step in told_of["transitions"]] == list(range(101, 201))
