"""Keys of every type: those compared by their text, and those that are invalid."""

import enum
import logging
import numbers
import uuid
from decimal import Decimal
from typing import Any

import pytest

from switchgear import SwitchEngaged, Switchgear
from switchgear.clock import ConsoleClock
from switchgear.evaluation.snapshot_store import SnapshotStore
from switchgear.testing import Console, FakeClock, engaged

TENANT = uuid.UUID("9f0c1bb1-6ad5-4c9d-9a3e-0d5f3c1f2a77")


class Department(enum.Enum):
    FINANCE = "finance"
    SEVEN = 7
    TENANT = TENANT
    HALF = 0.5
    YES = True


class Words(str, enum.Enum):  # noqa: UP042
    FINANCE = "finance"


class Names(enum.StrEnum):
    FINANCE = "finance"


class Numbers(enum.IntEnum):
    SEVEN = 7


class Mixed(int, enum.Enum):
    SEVEN = 7


class Sevenish(int):
    def __str__(self) -> str:
        return "another"


class Foreign:
    """An integer like numpy's, which is no `int`."""

    def __index__(self) -> int:
        return 7


numbers.Integral.register(Foreign)

KEYS = [
    ("segment:7", 7),
    ("segment:-7", -7),
    ("segment:7", Sevenish(7)),
    ("segment:7", Numbers.SEVEN),
    ("segment:7", Mixed.SEVEN),
    ("segment:7", Department.SEVEN),
    (f"segment:{TENANT}", TENANT),
    (f"segment:{TENANT}", Department.TENANT),
    ("segment:finance", Department.FINANCE),
    ("segment:finance", Words.FINANCE),
    ("segment:finance", Names.FINANCE),
]

WRONG = [
    (True, "bool"),
    (7.0, "float"),
    (b"finance", "bytes"),
    (bytearray(b"finance"), "bytearray"),
    (Decimal(7), "Decimal"),
    (object(), "object"),
    ({"id": "finance"}, "dict"),
    (Department.HALF, "Department"),
    (Department.YES, "Department"),
    ([7, None], "NoneType"),
    ([["finance"]], "list"),
]
"""Values that can't be a segment, each with the type that the log names."""


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]


@pytest.mark.parametrize(("switch", "key"), KEYS)
def test_key_of_another_type_counts_by_its_text(switch: str, key: Any) -> None:
    console = Console()
    gear = console.client()
    before = [gear.allowed(segment=key), gear.check(segment=(key,)).allowed]

    console.engage(switch)

    assert before == [True, True]
    for _ in range(2):  # The second answer is one that was kept.
        assert not gear.allowed(segment=key)
        assert gear.check(segment=key).switch == switch
        assert gear.check(segment=[key, "other"]).switch == switch
        assert gear.check(segment={key}).switch == switch
    assert gear._store.switch_counts()[switch][1] == 8


@pytest.mark.parametrize("argument", ["segment", "feature", "experiments"])
def test_integer_of_another_library_counts_as_a_key(argument: str) -> None:
    console = Console()
    gear = console.client()
    console.engage(f"{argument.removesuffix('s')}:7")

    assert not gear.allowed(**{argument: Foreign()})
    assert not gear.allowed(**{argument: [1, Foreign()]})


def test_equal_keys_of_other_types_share_no_answer() -> None:
    """1, True and 1.0 are equal, and have one hash."""
    console = Console()
    gear = console.client()
    console.engage("segment:1")

    keys, others = (1, "1", (1,)), (True, 1.0, Decimal(1), (True,), (1.0,))

    for _ in range(2):
        assert [gear.allowed(segment=key) for key in keys] == [False] * 3
        assert [gear.allowed(segment=other) for other in others] == [True] * 5
        assert [gear.check(segment=key).known for key in keys] == [True] * 3
        assert [gear.check(segment=other).known for other in others] == [False] * 5


def test_text_with_its_own_comparison_is_evaluated_by_its_text() -> None:
    class Careless(str):
        def __eq__(self, other: object) -> bool:
            return str(self).lower() == str(other).lower()

        def __hash__(self) -> int:
            return hash(str(self).lower())

    console = Console()
    gear = console.client()
    console.engage("segment:Finance")

    answers = [gear.allowed(segment=each) for each in (Careless("Finance"), "finance", "Finance")]

    assert answers == [False, True, False]


@pytest.mark.parametrize(
    "question",
    [(7, None, ()), (TENANT, None, ()), (None, Department.SEVEN, ()), ("a", None, ["b", 7])],
)
def test_answer_that_is_kept_is_found_by_keys_of_any_type(question: Any) -> None:
    store = SnapshotStore(ConsoleClock(FakeClock()))
    decision = store.decide(*question, targeting_key=None)

    cached = store.view.cached_query(question)

    assert cached is not None
    assert cached.decision is decision


def test_numbers_and_their_text_are_one_kept_answer() -> None:
    gear = Console().client()

    for key in (7, "7", Numbers.SEVEN, 7):
        gear.allowed(segment=key, feature=key, experiments=(key, 8))

    assert list(gear._store.cache) == [("7", "7", ("7", "8"))]
    assert gear._store.switch_counts()["experiment:8"] == (4, 0)


@pytest.mark.parametrize(("key", "kind"), WRONG)
def test_key_of_a_wrong_type_is_allowed_unknown_and_an_error_in_the_log(
    key: Any, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    gear = Console().client()

    assert gear.allowed(segment=key)
    assert not gear.check(segment=key).known
    gear.allowed(segment=key)

    assert gear.status().unknown == 3
    [error] = errors(caplog)
    assert f"segment has the unsupported type {kind}" in error
    assert "str, int, UUID or enum member" in error


def test_wrong_types_are_logged_once_for_each_argument(caplog: pytest.LogCaptureFixture) -> None:
    gear = Console().client()

    for number in range(100):
        gear.allowed(segment=number / 3, feature=number / 3, experiments=(number / 3, object()))

    assert len(errors(caplog)) == 4
    names = {message.split()[1] for message in errors(caplog)}
    assert names == {"segment", "feature", "experiments"}


def test_key_of_a_wrong_type_does_not_hide_the_other_keys() -> None:
    console = Console()
    console.engage("feature:chat")

    decision = console.client().check(segment=0.5, feature="chat")

    assert (decision.allowed, decision.switch) == (False, "feature:chat")


def test_experiments_may_be_a_mapping_of_their_names() -> None:
    console = Console()
    console.engage("experiment:blue")

    assert not console.client().allowed(experiments={"blue": "variant-a"})


def test_number_too_long_to_be_written_is_unknown() -> None:
    decision = Console().client().check(segment=10**5000)

    assert (decision.allowed, decision.known) == (True, False)


@pytest.mark.parametrize(
    ("member", "value"),
    [
        (Department.FINANCE, "finance"),
        (Department.TENANT, str(TENANT)),
        (Numbers.SEVEN, "7"),
        (Mixed.SEVEN, "7"),
        (Words.FINANCE, "finance"),
    ],
)
def test_targeting_key_of_an_enum_counts_by_its_value(member: Any, value: str) -> None:
    console = Console()
    gear = console.client()
    for percent in range(5, 100, 10):
        console.ramp("feature:chat", percent)

        answers = {gear.allowed(feature="chat", targeting_key=each) for each in (member, value)}
        answers |= {passes(gear, each) for each in (member, value)}

        assert len(answers) == 1


def passes(gear: Switchgear, key: Any) -> bool:
    """Return True if a guard with this key function lets the call through."""

    @gear.guard(feature="chat", targeting_key=lambda user: user)
    def call(user: Any) -> bool:
        return True

    try:
        return call(key)
    except SwitchEngaged:
        return False


def test_switch_of_a_number_is_engaged_for_a_test() -> None:
    gear = Console().client()

    with engaged("segment:7"):
        assert not gear.allowed(segment=7)
    assert gear.allowed(segment=7)


def test_switch_with_a_number_as_key_is_forced_and_announced() -> None:
    class Switches(enum.Enum):
        SEVEN = "segment:7"

    told: list[str] = []
    gear = Switchgear(None, force_engaged=["segment:8", Switches.SEVEN])  # type: ignore[list-item]
    gear.on_change(lambda change: told.append(change.switch), "segment:7", Switches.SEVEN)  # type: ignore[arg-type]

    assert not gear.allowed(segment=7)
    assert not gear.allowed(segment=8)
    assert gear.status().forced == ("segment:7", "segment:8")


@pytest.mark.parametrize("wrong", [7, None, b"segment:7", 0.5, ["segment:7"]])
def test_switch_name_that_is_no_text_is_refused(
    wrong: Any, caplog: pytest.LogCaptureFixture
) -> None:
    gear = Switchgear(None, force_engaged=[wrong, "segment:8"])

    assert gear.status().forced == ("segment:8",)
    assert len(errors(caplog)) == 1
    with pytest.raises(TypeError, match="segment:finance"):
        engaged(wrong)
    with pytest.raises(TypeError, match="segment:finance"):
        gear.on_change(print, wrong)


@pytest.mark.parametrize("wrong", [None, "print", 7, ConnectionError()])
def test_listener_that_is_not_callable_is_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match="callback"):
        Switchgear(None).on_change(wrong, "segment:7")
