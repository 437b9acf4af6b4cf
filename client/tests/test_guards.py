"""Guards: which calls they let through and stop, and what they inspect."""

import contextlib
import copy
import pickle
import threading
from types import SimpleNamespace

import pytest

from switchgear import SwitchEngaged, Switchgear
from switchgear.testing import Console


@pytest.fixture
def console() -> Console:
    return Console()


def test_allowed_call_goes_through_with_its_arguments_and_its_answer(console):
    @console.client().guard(feature="chat")
    def answer(question, *, loud=False):
        return question.upper() if loud else question

    assert answer("hello", loud=True) == "HELLO"


def test_engaged_switch_stops_the_call_before_its_body_runs(console):
    ran = []
    guarded = console.client().guard(feature="chat")(ran.append)
    console.engage("feature:chat", reason="prompt injection reported")

    with pytest.raises(SwitchEngaged) as stopped:
        guarded("hello")

    assert ran == []
    assert stopped.value.switch == "feature:chat"
    assert stopped.value.reason == "prompt injection reported"
    assert stopped.value.decision.version == console.version
    assert not stopped.value.decision
    assert str(stopped.value) == "stopped by feature:chat: prompt injection reported"


def test_guard_made_before_the_engagement_sees_every_change(console):
    @console.client().guard(segment="finance", feature="chat")
    def answer():
        return "hello"

    assert answer() == "hello"
    console.engage("segment:finance")
    with pytest.raises(SwitchEngaged, match="segment:finance"):
        answer()
    console.release("segment:finance")
    assert answer() == "hello"
    console.engage("global")
    with pytest.raises(SwitchEngaged, match="global:all"):
        answer()


def test_keys_are_found_in_the_arguments_of_the_call(console):
    @console.client().guard(
        segment=lambda user: user.department,
        feature=lambda intent: intent,
        experiments=lambda user: user.experiments,
    )
    def answer(user, intent):
        return "hello"

    kim = SimpleNamespace(department="finance", experiments=["blue", "green"])
    lee = SimpleNamespace(department=None, experiments=None)
    for switch in ("segment:finance", "experiment:green"):
        console.engage(switch)
        with pytest.raises(SwitchEngaged, match=switch):
            answer(kim, intent="chat")
        assert answer(lee, intent="chat") == "hello"
        console.release(switch)
    console.engage("feature:search")
    with pytest.raises(SwitchEngaged, match="feature:search"):
        answer(lee, intent="search")


def test_targeting_key_of_the_call_says_who_is_in_the_share_of_a_ramp(console):
    client = console.client()

    @client.guard(feature="chat", targeting_key=lambda user: user)
    def answer(user):
        return user

    console.engage("feature:chat")
    console.ramp("feature:chat", 30)

    def those_in():
        found = set()
        for number in range(200):
            with contextlib.suppress(SwitchEngaged):
                found.add(answer(number))
        return found

    first = those_in()
    assert those_in() == first
    assert 30 < len(first) < 90
    console.ramp("feature:chat", 70)
    assert first < those_in()


@pytest.mark.parametrize(
    "find",
    [
        lambda user: user,
        lambda user, limit: user,
        lambda limit, user: user,
        lambda user, question, limit: user,
        lambda user, question="", other=1: user,
        lambda *, user: user,
        lambda user, *rest, **more: user,
        lambda *args, **kwargs: kwargs.get("user") or args[0],
        lambda: "finance",
    ],
)
def test_finding_a_key_takes_what_it_names_however_the_call_gives_it(console, find):
    @console.client().guard(segment=find)
    def answer(user, question="why", *, limit=3):
        return user

    console.engage("segment:finance")
    for call in (
        lambda: answer("finance"),
        lambda: answer("finance", "what", limit=1),
        lambda: answer(user="finance", question="what"),
        lambda: answer(question="what", user="finance"),
    ):
        with pytest.raises(SwitchEngaged):
            call()


def test_finding_a_key_by_other_names_takes_the_arguments_as_they_come(console):
    @console.client().guard(segment=lambda who: who)
    def answer(user):
        return user

    console.engage("segment:finance")
    with pytest.raises(SwitchEngaged):
        answer("finance")
    assert answer("retail") == "retail"


def test_key_is_found_in_what_the_function_takes_by_default(console):
    @console.client().guard(segment=lambda department: department)
    def answer(user, department="finance"):
        return user

    console.engage("segment:finance")
    with pytest.raises(SwitchEngaged):
        answer("kim")
    assert answer("kim", "retail") == "kim"


def test_call_that_lacks_an_argument_is_told_so(console):
    @console.client().guard(segment=lambda user: user)
    def answer(user):
        return user

    with pytest.raises(TypeError, match="user"):
        answer()


def test_what_finding_a_key_raises_is_raised_into_the_call(console):
    @console.client().guard(segment=lambda user: user["department"])
    def answer(user):
        return "hello"

    with pytest.raises(KeyError, match="department"):
        answer({})


def test_several_keys_of_any_kind_are_asked_for_at_every_call(console):
    guards = [
        console.client().guard(experiments=kind(["blue", "green"]))
        for kind in (list, tuple, set, frozenset, iter, dict.fromkeys)
    ]
    console.engage("experiment:green")

    for guard in guards:
        for _ in range(2):
            with pytest.raises(SwitchEngaged, match="experiment:green"), guard:
                pass


def test_unknown_is_allowed_and_blocks_only_where_the_guard_says_so():
    client = Switchgear(None)
    assert client.guard(feature="chat")(lambda: "hello")() == "hello"

    with pytest.raises(SwitchEngaged) as stopped, client.guard(feature="chat", unknown="block"):
        raise AssertionError("this must not run")

    assert stopped.value.switch is None
    assert stopped.value.decision.known is False
    assert stopped.value.decision.allowed is False
    assert "no snapshot yet" in str(stopped.value)


def test_key_that_no_switch_can_have_is_unknown(console):
    client = console.client()

    with client.guard(segment="fin ance"):
        pass
    with pytest.raises(SwitchEngaged), client.guard(segment="fin ance", unknown="block"):
        pass


def test_known_and_released_is_allowed_though_unknown_would_block(console):
    with console.client().guard(feature="chat", unknown="block") as decision:
        assert decision.allowed
        assert decision.known


def test_context_manager_asks_once_on_entering(console):
    guard = console.client().guard(feature="chat")

    with guard as decision:
        console.engage("feature:chat")

    assert decision.allowed
    with pytest.raises(SwitchEngaged), guard:
        raise AssertionError("this must not run")


def test_what_the_block_raises_is_raised(console):
    with pytest.raises(ZeroDivisionError), console.client().guard(feature="chat"):
        raise ZeroDivisionError


def test_guard_is_used_by_many_threads_and_within_itself(console):
    guard = console.client().guard(feature="chat")
    passed = []

    @guard
    def inner():
        return "hello"

    def use():
        for _ in range(200):
            with guard, guard:
                passed.append(inner())

    threads = [threading.Thread(target=use) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert passed == ["hello"] * 1200


def test_every_guarded_call_is_counted_once(console):
    client = console.client()

    @client.guard(feature="chat")
    def answer():
        return "hello"

    for _ in range(3):
        answer()
    console.engage("feature:chat")
    with pytest.raises(SwitchEngaged):
        answer()

    assert client._store.switch_counts()["feature:chat"] == (3, 1)


@pytest.mark.parametrize("wrong", ["blok", "", None, True])
def test_misspelt_unknown_is_refused_when_the_guard_is_made(console, wrong):
    with pytest.raises(ValueError, match="unknown"):
        console.client().guard(feature="chat", unknown=wrong)


def test_coroutine_function_that_would_find_a_key_is_refused(console):
    async def department(user):
        return "finance"

    with pytest.raises(TypeError, match="segment"):
        console.client().guard(segment=department)


@pytest.mark.parametrize("make", [pickle.dumps, copy.copy])
def test_engaged_switch_of_another_process_says_the_same_here(console, make):
    client = console.client()
    console.engage("segment:finance", reason="데이터 유출 의심")
    with pytest.raises(SwitchEngaged) as stopped, client.guard(segment="finance"):
        pass
    made = make(stopped.value)

    again = pickle.loads(made) if isinstance(made, bytes) else made

    assert type(again) is SwitchEngaged
    assert again.decision == stopped.value.decision
    assert str(again) == "stopped by segment:finance: 데이터 유출 의심"


def test_engaged_switch_can_be_made_again_from_plain_values():
    """Recreate an exception from its arguments as JSON, as task queues do."""
    stopped = SwitchEngaged("feature:chat", "why", 7)

    assert stopped.args == ("feature:chat", "why", 7, True)
    assert SwitchEngaged(*stopped.args).decision == stopped.decision
