"""Policies of one name share their state; differences are logged."""

import json
import logging
import time

import pytest

from switchgear import BulkheadParameters, Policy, RetryParameters, Switchgear
from switchgear.clock import ConsoleClock, SystemTime
from switchgear.evaluation.snapshot_store import MAX_EPOCHS
from switchgear.policies.registry import MAX_DEPENDENCIES, Registry
from switchgear.refusals import BulkheadFull
from tests.policies.policy_clients import NAME
from tests.policies.registries import EPOCH, document, override, registry


@pytest.fixture
def gear():
    with Switchgear(None) as made:
        yield made


def warnings(caplog):
    return [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]


def test_limit_that_is_said_later_reaches_earlier_policies(gear):
    first = gear.policy(NAME)
    ask = first(lambda: 1)
    ask()
    gear.bulkhead(NAME, BulkheadParameters(limit=1))

    assert first.bulkhead is gear.bulkhead(NAME)
    with first.bulkhead, pytest.raises(BulkheadFull):
        ask()


def test_verdicts_that_come_too_late_are_complained_of(gear, caplog):
    gear.breaker(NAME)
    gear.policy(NAME, ignore=(KeyError,), is_failed_result=callable)
    gear.policy(NAME, ignore=(KeyError,))

    assert [one.split(":")[1] for one in warnings(caplog)] == [
        " policies of 'core->oracle' differ in ignore of its breaker",
        " policies of 'core->oracle' differ in is_failed_result of its breaker",
    ]


def test_budget_for_retries_is_that_of_the_first(gear, caplog):
    few = RetryParameters(budget_rate=0.1, budget_per_second=1)
    first = gear.policy(NAME, retry=few)
    gear.policy(NAME, retry=RetryParameters())

    budget = first._dependency.budget
    assert (budget.rate, budget.per_second) == (0.1, 1)
    [warning] = warnings(caplog)
    assert "the budget of its retries" in warning


def test_budget_of_the_console_goes_before_and_is_taken_back():
    made = registry()
    dependency = made.get_dependency(NAME)
    Policy(NAME, dependency=dependency, retry=RetryParameters(budget_rate=0.1))
    made.accept("core", EPOCH, document(1, {NAME: {"retry": {"budget_rate": 0.5}}}))
    assert dependency.budget.rate == 0.5

    made.accept("core", EPOCH, document(2, {NAME: {}}))
    assert dependency.budget.rate == 0.1


def test_tier_that_there_is_not_is_refused_by_name(gear):
    for make in (Policy, gear.policy):
        with pytest.raises(ValueError, match="critical, standard, optional, not 'premium'"):
            make(NAME, bulkhead="premium")


def test_version_of_another_service_is_not_told_as_its_own():
    made = registry()
    made.get_dependency("synapse->oracle").get_breaker()
    made.accept("synapse", EPOCH, document(7, {}))

    assert (made.version("core"), made.version("synapse")) == (None, 7)


def test_section_that_stays_wrong_is_logged_once(caplog):
    made = registry()
    for version in range(30):
        wrong = {"breaker": {"failure_rate": 7}, "timeout_ms": version + 1}
        made.accept("core", EPOCH, document(version, {NAME: wrong}))

    [warning] = warnings(caplog)
    assert "core->oracle: breaker" in warning


def test_fifth_service_is_logged_in_a_whole_sentence(gear, caplog):
    for number in range(5):
        gear.policy(f"a{number}->b")

    assert warnings(caplog) == [
        "switchgear: a4: policies are not received from the console: only 4 callers are followed"
    ]


def test_very_many_names_are_made_quickly_and_those_beyond_are_alone(caplog):
    made = Registry(ConsoleClock(SystemTime()))
    began = time.monotonic()
    for number in range(MAX_DEPENDENCIES):
        made.get_dependency(f"core->a{number}")
    made.accept("core", EPOCH, document(1, {f"core->a{n}": {"timeout_ms": 5} for n in range(500)}))
    assert time.monotonic() - began < 10

    assert made.get_dependency("core->a1") is made.get_dependency("core->a1")
    assert made.get_dependency("core->more") is not made.get_dependency("core->more")
    assert len(made.dependencies()) == MAX_DEPENDENCIES
    [warning] = [one for one in warnings(caplog) if "core->more" in one]
    assert "shares no state" in warning


def test_epochs_of_a_long_copy_are_trimmed():
    made = registry()
    left = tuple(str(number) for number in range(MAX_EPOCHS + 50))
    made.accept("core", EPOCH, document(1, {}), left)

    assert made.get_policies("core").left_epochs == left[-MAX_EPOCHS:]
    assert json.loads(made.get_policies("core").body)["version"] == 1


def test_breaker_that_could_not_be_made_says_nothing_to_the_next(caplog):
    dependency = registry().get_dependency(NAME)
    with pytest.raises(TypeError):
        dependency.get_breaker(ignore=KeyError)

    breaker = dependency.get_breaker(ignore=(ValueError,))

    assert breaker is dependency.breaker
    assert warnings(caplog) == []


def test_overrides_that_a_new_epoch_ends_are_told(caplog):
    made = registry()
    forced = {name: override("forced_open", 1) for name in (NAME, "core->mail")}
    over = override("forced_open", 1, "1999-01-01T00:00:00Z")
    made.get_dependency(NAME)
    made.accept("core", EPOCH, document(7, {**forced, "core->old": over, "core->b": {}}))
    assert warnings(caplog) == []

    made.accept("core", "another", document(1, {"core->mail": forced["core->mail"]}))

    [warning] = warnings(caplog)
    assert "ends the overrides of 1 dependencies: core->oracle;" in warning
