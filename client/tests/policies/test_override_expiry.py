"""Overrides end by the console's clock, which may turn out to show another time."""

import pytest

from switchgear.clock import ConsoleClock
from switchgear.policies.dependency import Dependency
from switchgear.policies.documents import DependencyConfig, ForcedMode
from switchgear.policies.registry import Registry
from switchgear.testing import FakeClock
from tests.fake_console import console, policies
from tests.faults import hangs
from tests.policies.policy_clients import NAME, following, wait_for_version
from tests.policies.registries import EPOCH, apply_config, document, override
from tests.wait_helpers import wait_until


@pytest.fixture
def there():
    with console() as made:
        yield made


def test_console_behind_the_local_clock_is_heard_before_its_override_is_judged(there):
    there.lie = hangs  # Nothing else tells the time.
    there.ahead_seconds = -3600
    there.override(NAME, "forced_open", seconds=600)
    with following(there, reports=False) as gear:
        steps = []
        policy = gear.policy(NAME)
        policy.breaker.watch(steps.append)
        wait_for_version(gear, 2)
        wait_until(lambda: policy.breaker.mode == "forced_open")
        assert [step.after for step in steps if step.n > 1] == []


def test_override_of_the_copy_on_disk_holds_once_the_console_is_heard(there, tmp_path):
    there.ahead_seconds = -3600
    there.override(NAME, "forced_open", seconds=600)
    with following(there, state_dir=tmp_path) as gear:
        gear.policy(NAME)
        wait_until(lambda: list(tmp_path.glob("*.policies")))
    with following(there, state_dir=tmp_path) as gear:
        policy = gear.policy(NAME)
        wait_until(lambda: policy.breaker.mode == "forced_open")


def test_override_that_a_wrong_clock_ended_begins_again():
    dependency = Dependency(NAME)
    breaker = dependency.get_breaker()
    apply_config(dependency, DependencyConfig(override=ForcedMode("forced_open", 1000.0, 1)), 900.0)
    dependency.expire_override(8000.0)
    assert breaker.mode == "normal"

    dependency.expire_override(901.0)
    assert breaker.mode == "forced_open"


def test_override_of_a_restored_backup_counts_although_its_version_was_seen(there):
    there.override(NAME, "forced_open")
    with following(there) as gear:
        breaker = gear.breaker(NAME)
        wait_until(lambda: breaker.mode == "forced_open")
        there.lift(NAME)
        wait_until(lambda: breaker.mode == "normal")
        there.dependencies, there.config_version = {}, 1
        there.restart()
        wait_for_version(gear, 1)
        there.override(NAME, "forced_open")

        wait_until(lambda: breaker.mode == "forced_open")


def test_reset_is_done_once_whatever_the_clock_shows():
    dependency = Dependency(NAME)
    breaker = dependency.get_breaker()
    said = DependencyConfig(override=ForcedMode("reset", 1000.0, 1))
    apply_config(dependency, said, 900.0)
    breaker.fail(breaker.admit(), ValueError())
    for now in (8000.0, 901.0):
        dependency.expire_override(now)
        apply_config(dependency, said, now)

    assert breaker.look().calls == 1


def test_document_of_another_service_is_refused(there):
    there.override(NAME, "forced_open")
    with following(there) as gear:
        policy = gear.policy(NAME)
        wait_for_version(gear, 2)
        body = policies("synapse", 9, {})
        there.config_lie = lambda asked: asked.reply(200, body, etag=f'"{there.epoch}.c9"')
        there.cut()
        wait_until(lambda: gear._policy_followers._followers[0].error)

        assert "another service" in gear._policy_followers._followers[0].error
        assert (policy.breaker.mode, gear.status().config_version) == ("forced_open", 2)


def at_nine_past_noon(mode):
    """A registry with that override, which ended at noon by the local clock, and its breaker."""
    clock = ConsoleClock(FakeClock(1_795_262_940.0))
    registry = Registry(clock, ends_alone=False)
    breaker = registry.get_dependency(NAME).get_breaker()
    registry.accept("core", EPOCH, document(1, {NAME: override(mode, 1, "2026-11-21T12:00:00Z")}))
    registry.expire_overrides()
    return clock, registry, breaker


@pytest.mark.parametrize(
    ("mode", "by_the_local_clock"),
    [
        ("forced_open", "forced_open"),
        ("forced_closed", "normal"),
        ("disabled", "normal"),
        ("metrics_only", "normal"),
    ],
)
def test_local_clock_ends_what_lets_calls_through_and_not_what_stops_them(mode, by_the_local_clock):
    clock, registry, breaker = at_nine_past_noon(mode)
    assert breaker.mode == by_the_local_clock

    for _ in range(3):
        clock.update({"date": "Sat, 21 Nov 2026 12:00:01 GMT"}, 0.0, 0.0)
    registry.expire_overrides()

    assert breaker.mode == "normal"


def test_one_wrong_date_does_not_end_what_stops_calls():
    clock, registry, breaker = at_nine_past_noon("forced_open")

    for date in ("Sat, 21 Nov 2026 11:00:01 GMT",) * 3 + ("Sat, 21 Nov 2026 13:00:01 GMT",):
        clock.update({"date": date}, 0.0, 0.0)
        registry.expire_overrides()

        assert breaker.mode == "forced_open"
