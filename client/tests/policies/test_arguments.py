"""Arguments of a wrong type are refused by name, and leave no trace."""

import enum
import logging
from typing import Any

import pytest

from switchgear import (
    Breaker,
    BreakerParameters,
    BulkheadFull,
    BulkheadParameters,
    Fallback,
    Policy,
    Retry,
    RetryParameters,
    Switchgear,
)
from switchgear.patterns.caches import MemoryCache
from switchgear.patterns.parameters import HttpTimeouts, SpendParameters
from switchgear.policies.arguments import RULES, Arguments, BreakerArguments
from tests.policies.policy_clients import NAME


async def coroutine(*_args: object) -> bool:
    return True


WRONG_TYPES: list[tuple[str, Any]] = [
    *(("timeout_seconds", each) for each in ("3", True, [3])),
    *(("deadline_seconds", each) for each in ("8", False, {"seconds": 8})),
    *(("http", each) for each in (5, {"connect": 5})),
    *(("breaker", each) for each in ({"failure_rate": 0.5}, 5, BreakerParameters, Breaker("a"))),
    *(("retry", each) for each in (3, {"attempts": 3}, Retry("a"), RetryParameters)),
    *(("bulkhead", each) for each in (2, {"limit": 2}, True)),
    *(("fallback", each) for each in ({"sql": None}, "default", 0)),
    *(("providers", each) for each in ([print], {"openai": "gpt"}, {1: print})),
    *(("cache", each) for each in ({}, 60, MemoryCache)),
    *(("on_switch", each) for each in ("yes", 1)),
    ("key", coroutine),
    *(("priority", each) for each in ("high", 1.5, coroutine)),
    *(
        ("ignore", each)
        for each in ([KeyError], KeyError, ("KeyError",), (KeyError(),), "KeyError")
    ),
    *(("is_failure", each) for each in (True, coroutine, KeyError, (KeyError,))),
    *(("is_failed_result", each) for each in ("failed", bool, coroutine)),
    *(("retry_on", each) for each in ([KeyError], KeyError, 503, (503,), coroutine)),
    *(("never", each) for each in ([KeyError], KeyError, 404, (404,), coroutine)),
    *(("retry_result", each) for each in (False, coroutine)),
    *(("truncate", each) for each in (1000, coroutine)),
    *(("hedge_after_seconds", each) for each in ("1", True)),
    *(("is_idempotent", each) for each in ("yes", 1)),
    *(("budget", each) for each in (1000, {"tokens": 1000})),
]

WRONG_VALUES: list[tuple[str, Any]] = [
    *(("timeout_seconds", each) for each in (0, -1, float("nan"), float("inf"))),
    *(("deadline_seconds", each) for each in (0, 1e9)),
    ("bulkhead", "premium"),
    ("hedge_after_seconds", 0),
]

RIGHT: dict[str, list[Any]] = {
    "timeout_seconds": [3, 0.5],
    "deadline_seconds": [8],
    "http": [HttpTimeouts()],
    "breaker": [BreakerParameters()],
    "retry": [RetryParameters()],
    "bulkhead": [BulkheadParameters(limit=2), "critical"],
    "fallback": [Fallback("a", default=1), len],
    "providers": [{"openai": print}, {}],
    "cache": [MemoryCache(60)],
    "on_switch": [True],
    "key": ["kim", 7, len],
    "priority": [10, True, len],
    "ignore": [(KeyError,), ()],
    "is_failure": [callable],
    "is_failed_result": [callable],
    "retry_on": [(KeyError,), callable],
    "never": [(KeyError, ValueError), callable],
    "retry_result": [bool],
    "truncate": [lambda args, kwargs: (args, kwargs)],
    "hedge_after_seconds": [],
    "is_idempotent": [True, False],
    "budget": [SpendParameters(tokens=1000)],
}


@pytest.fixture
def gear():
    with Switchgear(None) as made:
        yield made


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if one.levelno == logging.ERROR]


def refuses(error: type[Exception], argument: str, call: Any) -> None:
    with pytest.raises(error, match=rf"^{argument}\b"):
        call()


def test_every_argument_has_a_rule_and_is_tested() -> None:
    arguments = Arguments.__annotations__.keys()

    assert RULES.keys() == arguments | BreakerArguments.__annotations__.keys()
    assert {name for name, _ in WRONG_TYPES} == RIGHT.keys() == arguments


@pytest.mark.parametrize(("argument", "wrong"), WRONG_TYPES)
def test_argument_of_a_wrong_type_is_named_and_leaves_no_trace(
    gear: Switchgear, argument: str, wrong: Any, caplog: pytest.LogCaptureFixture
) -> None:
    refuses(TypeError, argument, lambda: gear.policy(NAME, **{argument: wrong}))
    refuses(TypeError, argument, lambda: Policy(NAME, **{argument: wrong}))

    assert gear.dependencies() == []
    for right in RIGHT[argument]:
        assert gear.policy(NAME, **{argument: right}).run(lambda: 1).value == 1
    assert errors(caplog) == []


@pytest.mark.parametrize(("argument", "wrong"), WRONG_VALUES)
def test_argument_of_a_wrong_value_is_named_and_leaves_no_trace(
    gear: Switchgear, argument: str, wrong: Any
) -> None:
    refuses(ValueError, argument, lambda: gear.policy(NAME, **{argument: wrong}))
    refuses(ValueError, argument, lambda: Policy(NAME, **{argument: wrong}))

    assert gear.dependencies() == []


@pytest.mark.parametrize("argument", sorted(RIGHT))
def test_argument_of_a_right_type_and_none_are_taken(gear: Switchgear, argument: str) -> None:
    for number, right in enumerate([None, *RIGHT[argument]]):
        assert gear.policy(f"core->a{number}", **{argument: right}).run(len, "ab").value == 2


def test_limit_that_is_given_as_parameters_holds_after_one_that_was_refused(
    gear: Switchgear,
) -> None:
    refuses(TypeError, "bulkhead", lambda: gear.policy(NAME, bulkhead=2))

    policy = gear.policy(NAME, bulkhead=BulkheadParameters(limit=1))

    with policy, pytest.raises(BulkheadFull):
        policy.run(lambda: 1)


def test_message_says_what_to_pass(gear: Switchgear) -> None:
    with pytest.raises(TypeError) as refused:
        gear.policy(NAME, retry=3)

    assert str(refused.value) == "retry must be RetryParameters(...), not int"


@pytest.mark.parametrize(
    ("argument", "wrong"),
    [
        ("parameters", {"failure_rate": 0.5}),
        ("parameters", BulkheadParameters(limit=1)),
        ("ignore", KeyError),
        ("is_failure", True),
        ("is_failed_result", coroutine),
    ],
)
def test_wrong_argument_of_a_breaker_is_named_and_leaves_no_trace(
    gear: Switchgear, argument: str, wrong: Any
) -> None:
    refuses(TypeError, argument, lambda: gear.breaker(NAME, **{argument: wrong}))

    assert gear.dependencies() == []
    assert gear.breaker(NAME, parameters=BreakerParameters(minimum_calls=7)).parameters == (
        BreakerParameters(minimum_calls=7)
    )


def test_wrong_parameters_of_a_bulkhead_are_named_and_leave_no_trace(gear: Switchgear) -> None:
    refuses(TypeError, "parameters", lambda: gear.bulkhead(NAME, 2))
    refuses(TypeError, "parameters", lambda: gear.bulkhead(NAME, BreakerParameters()))
    refuses(ValueError, "parameters", lambda: gear.bulkhead(NAME, "premium"))

    assert gear.dependencies() == []
    assert gear.bulkhead(NAME, "optional").parameters.limit == 2


def test_argument_that_there_is_not_is_named_and_leaves_no_trace(gear: Switchgear) -> None:
    for make, what in ((gear.policy, "policy"), (Policy, "policy"), (gear.breaker, "breaker")):
        with pytest.raises(TypeError, match=f"a {what} has no argument retries, timeout"):
            make(NAME, timeout=3, retries=3)

    assert gear.dependencies() == []


@pytest.mark.parametrize("what", [{"on_switch": True}, {"cache": MemoryCache(60)}])
def test_what_a_fallback_says_itself_is_refused_and_leaves_no_trace(
    gear: Switchgear, what: dict[str, Any]
) -> None:
    with pytest.raises(ValueError, match="to the Fallback"):
        gear.policy(NAME, fallback=Fallback("a", default=1), ignore=(KeyError,), **what)

    assert gear.dependencies() == []


@pytest.mark.parametrize("name", [7, None, b"core->oracle", print, ["core->oracle"]])
def test_name_that_is_no_text_is_refused(gear: Switchgear, name: Any) -> None:
    for make in (gear.policy, gear.breaker, gear.bulkhead, Policy):
        with pytest.raises(TypeError, match=r"^name must be text such as 'core->oracle'"):
            make(name)


def test_name_of_an_enum_is_its_text(gear: Switchgear) -> None:
    class Names(str, enum.Enum):  # noqa: UP042
        ORACLE = NAME

    assert gear.breaker(Names.ORACLE) is gear.breaker(NAME) is gear.policy(Names.ORACLE).breaker
    assert [each.name for each in gear.dependencies()] == [NAME]


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("core_api->oracle", "core-api->oracle"),
        ("Core->Oracle", "core->oracle"),
        ("core.v2->x", "core-v2->x"),
        ("core -> oracle", "core->oracle"),
        ("core→oracle", "core->oracle"),
        ("core->Oracle DB (replica)", "core->oracle-db-replica"),
        ("oracle", "caller->callee, such as core->oracle"),
        ("->oracle", "caller->callee, such as core->oracle"),
        ("", "caller->callee, such as core->oracle"),
        (f"core->{'a' * 61}", f"core->{'a' * 60}"),
    ],
)
def test_name_that_the_console_can_not_know_works_and_is_an_error_in_the_log(
    gear: Switchgear, name: str, instead: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert [gear.policy(name).run(lambda: 1).value for _ in range(3)] == [1, 1, 1]

    [error] = errors(caplog)
    assert error.endswith(f"; use {instead}")
    assert "not reported" in error
    assert gear.dependencies() == []
