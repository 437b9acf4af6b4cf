"""Policies follow what the console says, live."""

import threading
import time

import pytest

from switchgear import BreakerParameters, CircuitOpen, RetryParameters
from tests.fake_console import CONFIG, console
from tests.faults import hangs
from tests.policies.policy_clients import NAME, following, wait_for_version
from tests.wait_helpers import our_threads, wait_until


@pytest.fixture
def there():
    with console() as made:
        yield made


def test_what_the_console_says_goes_before_the_code(there):
    there.configure(NAME, timeout_ms=500, breaker={"failure_count": 9}, retry=None)
    with following(there) as gear:
        policy = gear.policy(
            NAME,
            timeout_seconds=7,
            breaker=BreakerParameters(failure_count=2),
            retry=RetryParameters(attempts=4),
        )
        wait_for_version(gear, 2)

        assert policy.timeout_seconds == 0.5
        assert policy.breaker.parameters.failure_count == 9
        assert policy.retry.parameters.attempts == 4


def test_change_reaches_what_was_decorated_before_and_keeps_its_state(there):
    with following(there) as gear:
        policy = gear.policy(NAME)
        calls = []

        @policy
        def ask():
            calls.append(1)
            raise TimeoutError

        with pytest.raises(TimeoutError):
            ask()
        there.configure(
            NAME, retry={"attempts": 3, "base_seconds": 0}, breaker={"failure_count": 3}
        )
        wait_until(lambda: policy.retry is not None)
        with pytest.raises(CircuitOpen):
            ask()

    assert len(calls) == 3
    assert policy.counters.counted()["timeout"] == 3


def test_section_that_is_taken_back_leaves_it_to_the_code_again(there):
    there.configure(NAME, bulkhead={"limit": 3}, timeout_ms=500)
    with following(there) as gear:
        policy = gear.policy(NAME, timeout_seconds=7)
        wait_until(lambda: policy.bulkhead is not None)
        there.configure(NAME, bulkhead=None, timeout_ms=None)
        wait_until(lambda: policy.bulkhead is None)

        assert policy.timeout_seconds == 7


def test_policies_of_one_name_share_what_the_console_drives(there):
    with following(there) as gear:
        first, second = gear.policy(NAME), gear.policy(NAME)

        assert first.breaker is second.breaker is gear.breaker(NAME)
        assert gear.policy("core->synapse").breaker is not first.breaker
        assert [one for one in our_threads() if one == "switchgear-policies"] == [
            "switchgear-policies"
        ]


def test_service_that_calls_nobody_asks_for_no_policies(there):
    with following(there) as gear:
        assert gear.wait_ready()
        assert "switchgear-policies" not in our_threads()
        assert gear.status().config_version is None

    assert there.requests_for(CONFIG) == []


@pytest.mark.parametrize("mode", ["forced_open", "forced_closed", "disabled", "metrics_only"])
def test_override_holds_until_it_is_lifted(there, mode):
    with following(there) as gear:
        breaker = gear.breaker(NAME)
        there.override(NAME, mode)
        wait_until(lambda: breaker.mode == mode)
        there.lift(NAME)
        wait_until(lambda: breaker.mode == "normal")

        assert (breaker.state, breaker.look().calls) == ("closed", 0)


def test_override_is_in_force_within_a_second(there):
    with following(there) as gear:
        breaker = gear.breaker(NAME)
        wait_for_version(gear, 1)
        wait_until(lambda: "wait" in there.requests_for(CONFIG)[-1].query)
        began = time.monotonic()
        there.override(NAME, "forced_open")
        wait_until(lambda: breaker.mode == "forced_open")

        assert time.monotonic() - began < 1


def test_override_that_came_first_holds_for_a_breaker_that_is_made_later(there):
    there.override(NAME, "forced_open")
    with following(there) as gear:
        gear.policy("core->synapse")
        wait_for_version(gear, 2)

        with pytest.raises(CircuitOpen), gear.policy(NAME):
            raise AssertionError("it was entered")


def test_override_ends_by_itself_while_the_console_is_silent(there):
    with following(there) as gear:
        breaker = gear.breaker(NAME)
        wait_for_version(gear, 1)
        there.config_lie = hangs
        there.override(NAME, "disabled", seconds=0.7)
        there.config_lie = None
        there.cut()
        wait_until(lambda: breaker.mode == "disabled")
        there.config_lie = hangs
        there.cut()
        began = time.monotonic()
        wait_until(lambda: breaker.mode == "normal")

        assert time.monotonic() - began < 5


def test_override_ends_by_the_clock_of_the_console():
    with console(ahead_seconds=7200) as there, following(there) as gear:
        breaker = gear.breaker(NAME)
        there.override(NAME, "disabled", seconds=600)
        wait_until(lambda: breaker.mode == "disabled")
        time.sleep(0.3)

        assert breaker.mode == "disabled"


def test_reset_happens_once(there):
    with following(there) as gear:
        breaker = gear.breaker(NAME, parameters=BreakerParameters(failure_count=1))
        breaker.fail(breaker.admit(), ValueError())
        assert breaker.state == "open"
        there.override(NAME, "reset")
        wait_until(lambda: breaker.state == "closed")
        breaker.fail(breaker.admit(), ValueError())
        there.configure(NAME, timeout_ms=500)
        wait_for_version(gear, 3)
        there.lift(NAME)
        wait_for_version(gear, 4)

        assert breaker.state == "open"


def test_changes_while_calls_go_on_lose_none(there):
    with following(there) as gear:
        policy = gear.policy(NAME)
        guarded = policy(lambda: 1)
        stop = threading.Event()
        done, wrong = [], []

        def call():
            count = 0
            while not stop.is_set():
                try:
                    count += guarded()
                except Exception as error:
                    wrong.append(error)
            done.append(count)

        threads = [threading.Thread(target=call) for _ in range(4)]
        for thread in threads:
            thread.start()
        for number in range(5):
            there.configure(
                NAME,
                timeout_ms=1000 + number,
                retry={"attempts": 2 + number} if number % 2 else None,
                bulkhead={"limit": 10 + number} if number % 2 == 0 else None,
            )
            wait_until(lambda: policy.timeout_seconds == (1000 + number) / 1000)  # noqa: B023
        stop.set()
        for thread in threads:
            thread.join()

        assert wrong == []
        assert policy.counters.counted()["success"] == sum(done)
