"""Reports of unused breakers stay the same, and keep nothing."""

import json
import logging

from switchgear import BreakerParameters, Switchgear
from switchgear.clock import ConsoleClock, SystemTime
from switchgear.console.report_builder import ReportBuilder, format_time
from switchgear.policies.registry import Registry
from switchgear.policies.resilience_report import MAX_TRANSITION_BYTES, ResilienceReport
from switchgear.settings import Settings
from switchgear.testing import FakeClock
from tests.fake_console import TOKEN, console
from tests.policies.policy_clients import NAME
from tests.reporting.test_breaker_reports import steps, trip

FIRST = BreakerParameters(failure_count=1)
LATER = "Mon, 23 Nov 2026 03:00:00 GMT"


def reporting_of(name=NAME, clock=None):
    clock = clock or ConsoleClock(SystemTime())
    registry = Registry(clock, ends_alone=False)
    return registry.get_dependency(name), ResilienceReport(registry, clock, "core")


def test_breaker_that_nothing_happened_to_is_since_the_same_time():
    dependency, reporting = reporting_of()
    dependency.get_breaker()

    assert len({reporting()["breakers"][0]["since"] for _ in range(300)}) == 1


def test_process_began_at_the_same_time_in_each_report():
    clock = ConsoleClock(SystemTime())
    reports = ReportBuilder(Settings(url=None, service="core", instance="a1"), clock, ())

    assert len({json.loads(reports.build_next())["started_at"] for _ in range(300)}) == 1


def test_time_follows_the_clock_of_the_console():
    clock = ConsoleClock(time := FakeClock())
    dependency, reporting = reporting_of(clock=clock)
    dependency.get_breaker()
    before = reporting()["breakers"][0]["since"]
    time.advance(0.4)
    assert reporting()["breakers"][0]["since"] == before

    clock.update({"date": LATER}, 0.0, 0.0)

    assert reporting()["breakers"][0]["since"] == format_time(clock.now() - 0.4)


def test_transition_noted_late_by_a_slow_thread_is_told():
    dependency, reporting = reporting_of()
    breaker = dependency.get_breaker()
    breaker.force("forced_open")
    breaker.unforce()
    first, second = dependency.transitions
    dependency.transitions.remove(first)

    [told] = reporting()["breakers"]
    dependency.transitions.append(first)

    assert [step["n"] for step in told["transitions"]] == [2]
    assert reporting.confirm_delivery()
    [told] = reporting()["breakers"]
    assert [step["n"] for step in told["transitions"]] == [1]
    assert not reporting.confirm_delivery()
    assert second not in dependency.transitions


def test_causes_take_no_more_than_their_room():
    clock = ConsoleClock(SystemTime())
    registry = Registry(clock, ends_alone=False)
    for number in range(20):
        dependency = registry.get_dependency(f"core->{number}")
        breaker = dependency.get_breaker(parameters=FIRST)
        for _ in range(50):
            breaker._machine.transition("open", clock.time.monotonic(), "\N{GRINNING FACE}" * 300)
            breaker.reset()
    reporting, seen = ResilienceReport(registry, clock, "core"), 0

    while True:
        rows = reporting()["breakers"]
        told = [step for row in rows for step in row["transitions"]]
        assert sum(len(step["cause"].encode()) for step in told) < MAX_TRANSITION_BYTES
        seen += len(told)
        if not reporting.confirm_delivery():
            break

    assert seen == 20 * 100


def test_last_reports_leave_no_transition_behind(caplog):
    caplog.set_level(logging.CRITICAL, "switchgear")
    names = [f"core->{number}" for number in range(40)]
    with console() as there:
        gear = Switchgear(there.url, TOKEN, service="core", state_dir=None)
        for name in names:
            breaker = gear.breaker(name, parameters=FIRST)
            for _ in range(40):
                trip(breaker)
                breaker.reset()
        gear.close(20)

        assert gear.status().unreported == 0
        assert all(len(steps(there, name)) == 80 for name in names)
