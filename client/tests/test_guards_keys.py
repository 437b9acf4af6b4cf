"""Keys of every type in guards: those given once, and those found in each call."""

import enum
import logging
import uuid
from typing import Any

import pytest

from switchgear import SwitchEngaged
from switchgear.testing import Console

TENANT = uuid.UUID("9f0c1bb1-6ad5-4c9d-9a3e-0d5f3c1f2a77")


class Department(enum.Enum):
    FINANCE = "finance"
    HALF = 0.5


KEYS = [
    ("segment:7", 7),
    (f"segment:{TENANT}", TENANT),
    ("segment:finance", Department.FINANCE),
]


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if one.levelno == logging.ERROR]


@pytest.mark.parametrize(("switch", "key"), KEYS)
@pytest.mark.parametrize("several", [lambda key: key, lambda key: ["other", key]])
def test_key_that_is_found_counts_by_its_text(switch: str, key: Any, several: Any) -> None:
    console = Console()
    ran = []

    @console.client().guard(segment=lambda tenant: several(tenant))
    def answer(tenant: Any) -> None:
        ran.append(tenant)

    answer(key)
    console.engage(switch)

    with pytest.raises(SwitchEngaged, match=switch):
        answer(key)
    assert ran == [key]


@pytest.mark.parametrize(("switch", "key"), KEYS)
@pytest.mark.parametrize("several", [lambda key: key, lambda key: iter(["other", key])])
def test_key_that_is_fixed_counts_by_its_text(switch: str, key: Any, several: Any) -> None:
    console = Console()
    guard = console.client().guard(segment=several(key))

    console.engage(switch)

    for _ in range(2):
        with pytest.raises(SwitchEngaged, match=switch), guard:
            raise AssertionError("this must not run")


def test_keys_of_an_iterator_stop_the_calls_of_a_policy_too() -> None:
    console = Console()
    policy = console.client().policy("core->oracle", segment=iter(["other", 7]))

    console.engage("segment:7")

    for _ in range(2):
        with pytest.raises(SwitchEngaged, match="segment:7"):
            policy.run(lambda: 1)


@pytest.mark.parametrize("argument", ["segment", "feature", "experiments"])
@pytest.mark.parametrize(
    ("wrong", "kind"),
    [
        (0.5, "float"),
        (True, "bool"),
        (b"finance", "bytes"),
        (object(), "object"),
        (Department.HALF, "Department"),
        (["finance", None], "NoneType"),
        ([["finance"]], "list"),
    ],
)
def test_fixed_key_of_a_wrong_type_is_refused_when_the_guard_is_made(
    argument: str, wrong: Any, kind: str
) -> None:
    gear = Console().client()

    for make in (gear.guard, lambda **words: gear.policy("core->oracle", **words)):
        with pytest.raises(TypeError, match=f"^{argument} must be a str.* not {kind}$"):
            make(**{argument: wrong})

    assert gear.dependencies() == []


@pytest.mark.parametrize("argument", ["segment", "feature"])
def test_fixed_record_is_no_key(argument: str) -> None:
    with pytest.raises(TypeError, match=f"{argument} must be a str.* not dict"):
        Console().client().guard(**{argument: {"id": "finance"}})


def test_found_key_of_a_wrong_type_runs_counted_as_unknown_with_one_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    console = Console()
    gear = console.client()
    console.engage("segment:0.5")

    @gear.guard(segment=lambda tenant: tenant)
    def answer(tenant: float) -> str:
        return "hello"

    assert [answer(0.5), answer(0.25)] == ["hello"] * 2
    assert gear.status().unknown == 2
    [error] = errors(caplog)
    assert "segment has the unsupported type float" in error


def test_found_key_of_a_wrong_type_is_stopped_where_unknown_blocks() -> None:
    gear = Console().client()

    @gear.guard(segment=lambda tenant: tenant, unknown="block")
    def answer(tenant: float) -> None:
        raise AssertionError("this must not run")

    with pytest.raises(SwitchEngaged, match="a key of this call is invalid") as stopped:
        answer(0.5)
    assert stopped.value.switch is None
    assert not stopped.value.decision.known
