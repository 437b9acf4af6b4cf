"""Policies go on by what was said last, whatever becomes of the console, and of who asked."""

import gc
import logging
import stat
import time
import weakref

import pytest

from switchgear import BreakerParameters, Policy, Switchgear
from tests.fake_console import CONFIG, TOKEN, Exchange, console, policies
from tests.faults import errors, forbids, garbage, hangs
from tests.policies.policy_clients import NAME, following, wait_for_version
from tests.wait_helpers import our_threads, wait_until


@pytest.fixture
def there():
    with console() as made:
        yield made


def test_what_was_said_last_holds_while_the_console_is_away(there, tmp_path):
    there.configure(NAME, timeout_ms=500)
    there.override(NAME, "forced_open")
    with following(there, state_dir=tmp_path) as gear:
        gear.policy(NAME)
        wait_for_version(gear, 3)
        wait_until(lambda: list(tmp_path.glob("*.policies")))
    [file] = tmp_path.glob("*.policies")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600

    there.lie = there.config_lie = errors
    with following(there, state_dir=tmp_path) as gear:
        policy = gear.policy(NAME)

        assert policy.timeout_seconds == 0.5
        assert policy.breaker.mode == "forced_open"


@pytest.mark.parametrize("damage", [b"", b"x", b'{"format":1}\n{}'])
def test_damaged_copy_is_as_good_as_none(there, tmp_path, damage):
    with following(there, state_dir=tmp_path) as gear:
        gear.policy(NAME)
        wait_until(lambda: list(tmp_path.glob("*.policies")))
    [file] = tmp_path.glob("*.policies")
    file.write_bytes(damage)
    there.configure(NAME, timeout_ms=500)

    with following(there, state_dir=tmp_path) as gear:
        policy = gear.policy(NAME)
        wait_for_version(gear, 2)
        assert policy.timeout_seconds == 0.5
    wait_until(lambda: b'"version": 2' in file.read_bytes())


def older(exchange: Exchange) -> None:
    body = policies("core", 1, {NAME: {"timeout_ms": 1}})
    exchange.reply(200, body, etag=f'"{exchange.console.epoch}.c1"')


def without_version(exchange: Exchange) -> None:
    exchange.reply(200, policies("core", 99, {NAME: {"timeout_ms": 1}}))


def no_config(exchange: Exchange) -> None:
    exchange.reply(200, b'{"dependencies":[]}', etag=f'"{exchange.console.epoch}.c99"')


@pytest.mark.parametrize("lie", [older, without_version, no_config, garbage, errors, forbids])
def test_console_that_lies_changes_nothing_and_is_believed_again(there, caplog, lie):
    there.configure(NAME, timeout_ms=500)
    with following(there) as gear:
        policy = gear.policy(NAME)
        wait_for_version(gear, 2)
        request_count = len(there.requests_for(CONFIG))
        there.config_lie = lie
        there.cut()
        with caplog.at_level(logging.WARNING, "switchgear"):
            wait_until(lambda: any("can't get policies" in one.message for one in caplog.records))

        assert policy.timeout_seconds == 0.5
        assert gear.status().config_version == 2
        assert len(there.requests_for(CONFIG)) - request_count < 20
        assert TOKEN not in caplog.text
        if lie is not forbids:  # Which is only asked again after a while.
            there.config_lie = None
            there.configure(NAME, timeout_ms=900)
            wait_until(lambda: policy.timeout_seconds == 0.9)


def test_section_that_is_wrong_is_logged_once_and_the_rest_holds(there, caplog):
    with caplog.at_level(logging.WARNING, "switchgear"), following(there) as gear:
        policy = gear.policy(NAME)
        there.configure(NAME, timeout_ms=500, breaker={"failure_rate": 7})
        wait_until(lambda: policy.timeout_seconds == 0.5)

    assert policy.breaker.parameters == BreakerParameters()
    [record] = [one for one in caplog.records if NAME in one.getMessage()]
    assert "breaker: failure_rate" in record.getMessage()


def test_epoch_that_was_left_stays_left(there):
    there.configure(NAME, timeout_ms=500)
    with following(there) as gear:
        policy = gear.policy(NAME)
        wait_for_version(gear, 2)
        left = there.epoch
        there.restart()
        there.config_version = 0
        there.configure(NAME, timeout_ms=700)
        wait_until(lambda: policy.timeout_seconds == 0.7)

        body = policies("core", 99, {NAME: {"timeout_ms": 1}})
        there.config_lie = lambda exchange: exchange.reply(200, body, etag=f'"{left}.c99"')
        there.cut()
        request_count = len(there.requests_for(CONFIG))
        wait_until(lambda: len(there.requests_for(CONFIG)) > request_count)
        time.sleep(0.2)

        assert policy.timeout_seconds == 0.7


def test_console_that_says_much_does_not_take_the_processor(there):
    many = {f"core->a{number}": {"breaker": {"failure_count": 3}} for number in range(2000)}

    def talk(exchange: Exchange) -> None:
        with there.changed:
            there.config_version += 1
        body = policies("core", there.config_version, many)
        exchange.reply(200, body, etag=there.config_etag)

    there.config_lie = talk
    with Switchgear(there.url, TOKEN, service="core", state_dir=None) as gear:
        gear.policy(NAME)
        wait_until(lambda: there.requests_for(CONFIG))
        began = len(there.requests_for(CONFIG))
        time.sleep(1)

        assert len(there.requests_for(CONFIG)) - began < 13


def test_nothing_waits_for_a_console_that_hangs(there):
    there.lie = there.config_lie = there.report_lie = hangs
    began = time.monotonic()
    made = Switchgear(there.url, TOKEN, service="core", state_dir=None)
    ask = made.policy(NAME)(lambda: 1)

    assert [ask() for _ in range(1000)] == [1] * 1000
    assert time.monotonic() - began < 2
    made.close(0.5)


def test_name_that_is_no_dependency_works_and_is_logged_once(there, caplog):
    with caplog.at_level(logging.WARNING, "switchgear"), following(there) as gear:
        assert [gear.policy("Neo4j pool")(lambda: 1)() for _ in range(3)] == [1, 1, 1]

    assert [one.getMessage() for one in caplog.records if "Neo4j pool" in one.getMessage()] == [
        "switchgear: policy 'Neo4j pool' is not reported, and the console can't configure or"
        " override it: a name must be caller->callee, each 1 to 60 of a-z, 0-9 and -; use"
        " caller->callee, such as core->oracle"
    ]
    assert there.requests_for(CONFIG) == []


def test_policies_of_a_fifth_service_are_the_codes_alone(there):
    with following(there) as gear:
        for number in range(6):
            gear.policy(f"a{number}->b")
        wait_until(lambda: len({one.query["service"] for one in there.requests_for(CONFIG)}) == 4)

    assert {one.query["service"] for one in there.requests_for(CONFIG)} == {"a0", "a1", "a2", "a3"}


def test_closed_client_has_no_thread_and_its_policies_stay(there):
    there.override(NAME, "disabled")
    with following(there) as gear:
        policy = gear.policy(NAME)
        wait_until(lambda: policy.breaker.mode == "disabled")

    wait_until(lambda: not {"switchgear-policies", "switchgear-overrides"} & {*our_threads()})
    assert policy(lambda: 3)() == 3


def test_client_that_nobody_holds_ends_its_threads(there):
    made = Switchgear(there.url, TOKEN, service="core", state_dir=None)
    breaker = made.breaker(NAME)
    wait_until(lambda: there.requests_for(CONFIG))
    gone = weakref.ref(made)
    del made
    gc.collect()

    assert gone() is None
    wait_until(lambda: not {"switchgear-policies", "switchgear-reporter"} & {*our_threads()})
    assert breaker.state == "closed"


def test_policy_holds_its_client(there):
    held = [Switchgear(there.url, TOKEN, service="core", state_dir=None).policy(NAME)]
    gc.collect()
    there.configure(NAME, timeout_ms=500)
    wait_until(lambda: held[0].timeout_seconds == 0.5)

    held.clear()
    gc.collect()
    wait_until(lambda: "switchgear-policies" not in our_threads())


def test_policy_without_a_client_follows_nobody():
    before = our_threads()

    assert Policy(NAME)(lambda: 1)() == 1
    assert our_threads() == before


def test_status_says_that_policies_cannot_be_fetched(there):
    there.config_lie = errors
    with following(there) as gear:
        gear.policy(NAME)
        assert gear.wait_ready(30)
        assert "500" in wait_until(lambda: gear.status().config_error)
        assert gear.status().error is None

        there.config_lie = None
        wait_for_version(gear, 1)
        wait_until(lambda: gear.status().config_error is None)


def test_client_gives_the_dependencies_that_a_console_can_have():
    with Switchgear(None, service="core") as gear:
        gear.policy("neo4j")
        policy = gear.policy(NAME)

        [found] = gear.dependencies()
        assert (found.name, found.breaker) == (NAME, policy.breaker)
