"""Overrides end by the console's clock, which may turn out to show another time."""

import pytest

from switchgear.policies.dependency import Dependency
from switchgear.policies.documents import Override, Said
from tests.consoles import console, policies
from tests.lies import hangs
from tests.policies.following import NAME, following, heard
from tests.telling.waiting import until


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
        heard(gear, 2)
        until(lambda: policy.breaker.mode == "forced_open")
        assert [step.after for step in steps if step.n > 1] == []


def test_override_of_the_copy_on_disk_holds_once_the_console_is_heard(there, tmp_path):
    there.ahead_seconds = -3600
    there.override(NAME, "forced_open", seconds=600)
    with following(there, state_dir=tmp_path) as gear:
        gear.policy(NAME)
        until(lambda: list(tmp_path.glob("*.policies")))
    with following(there, state_dir=tmp_path) as gear:
        policy = gear.policy(NAME)
        until(lambda: policy.breaker.mode == "forced_open")


def test_override_that_a_wrong_clock_ended_begins_again():
    dependency = Dependency(NAME)
    breaker = dependency.breaker_of()
    dependency.say(Said(override=Override("forced_open", 1000.0, 1)), 900.0)
    dependency.expire(8000.0)
    assert breaker.mode == "normal"

    dependency.expire(901.0)
    assert breaker.mode == "forced_open"


def test_override_of_a_restored_backup_counts_although_its_version_was_seen(there):
    there.override(NAME, "forced_open")
    with following(there) as gear:
        breaker = gear.breaker(NAME)
        until(lambda: breaker.mode == "forced_open")
        there.lift(NAME)
        until(lambda: breaker.mode == "normal")
        there.dependencies, there.config_version = {}, 1
        there.restart()
        heard(gear, 1)
        there.override(NAME, "forced_open")

        until(lambda: breaker.mode == "forced_open")


def test_reset_is_done_once_whatever_the_clock_shows():
    dependency = Dependency(NAME)
    breaker = dependency.breaker_of()
    said = Said(override=Override("reset", 1000.0, 1))
    dependency.say(said, 900.0)
    breaker.fail(breaker.admit(), ValueError())
    for now in (8000.0, 901.0):
        dependency.expire(now)
        dependency.say(said, now)

    assert breaker.look().calls == 1


def test_document_of_another_service_is_refused(there):
    there.override(NAME, "forced_open")
    with following(there) as gear:
        policy = gear.policy(NAME)
        heard(gear, 2)
        body = policies("synapse", 9, {})
        there.config_lie = lambda asked: asked.reply(200, body, etag=f'"{there.epoch}.c9"')
        there.cut()
        until(lambda: gear._configurers._all[0].error)

        assert "another service" in gear._configurers._all[0].error
        assert (policy.breaker.mode, gear.status().config_version) == ("forced_open", 2)
