"""The sources of a fallback, the errors that it never covers, and the labels of its answers."""

import asyncio
import inspect

import pytest

from switchgear import Switchgear
from switchgear.failures.classification import Catastrophic
from switchgear.guards import SwitchEngaged
from switchgear.journal import add_hook
from switchgear.patterns.answers import Answer, latest_answer
from switchgear.patterns.caches import MISSING, MemoryCache
from switchgear.patterns.counters import Counters
from switchgear.patterns.deadline import Deadline
from switchgear.patterns.fallback import Fallback
from switchgear.patterns.fallback_targets import FallbackTarget
from switchgear.refusals import BulkheadFull, CircuitOpen
from tests.patterns.clocks import Clock
from tests.patterns.failing_calls import Down, fails


def test_call_that_works_is_answered_by_itself():
    calls = []
    fallback = Fallback("core->oracle", calls.append, default="nothing")

    @fallback
    def ask(question, *, loud=False):
        """Asks."""
        return question.upper() if loud else question

    assert ask("why", loud=True) == "WHY"
    assert latest_answer() == Answer("WHY", "call", False, ())
    assert calls == []
    assert fallback.counters.counted()["fallback"] == 0
    assert ask.__doc__ == "Asks."
    assert str(inspect.signature(ask)) == "(question, *, loud=False)"


def test_targets_get_the_arguments_and_the_cause_they_name_in_order():
    met = []
    entries = []

    def second(question, cause):
        met.append(("second", question, type(cause).__name__))
        raise TimeoutError("slow")

    def third(*, question, model, cause):
        met.append(("third", question, model, type(cause).__name__))
        return "from the third"

    counters = Counters()
    fallback = Fallback(
        "core->oracle",
        second,
        FallbackTarget(name="third", call=third, model="small"),
        default="nothing",
        counters=counters,
    )
    ask = fallback(lambda question, tenant: fails())
    end = add_hook(entries.append)
    try:
        assert ask("why", tenant="t1") == "from the third"
    finally:
        end()

    assert met == [("second", "why", "Down"), ("third", "why", "small", "TimeoutError")]
    assert latest_answer() == Answer(
        "from the third", "third", False, ("Down: no route to host", "TimeoutError: slow")
    )
    assert fallback.count_answers() == {"third": 1}
    assert counters.counted()["fallback"] == 1
    (entry,) = [entry for entry in entries if entry.name == "call_fallback"]
    assert entry.about == "core->oracle"
    assert entry.fields == {"source": "third", "error": "Down"}


def test_bare_function_and_default_are_partial_and_a_provider_is_not():
    by_function = Fallback("a", lambda: "less")
    by_provider = Fallback("a", FallbackTarget(name="claude", call=lambda: "as good"))
    by_default = Fallback("a", default="try again later")

    assert by_function.run(fails).is_partial
    assert not by_provider.run(fails).is_partial
    assert by_default.run(fails, "why") == Answer(
        "try again later", "default", True, ("Down: no route to host",)
    )


def test_none_may_be_a_default():
    assert Fallback("a", default=None).run(fails).value is None


def test_first_error_is_raised_with_notes_when_all_sources_fail():
    def also_fails():
        raise TimeoutError("slow")

    fallback = Fallback(
        "a",
        also_fails,
        only_no := FallbackTarget(name="off", call=lambda: "never", only_if=lambda: False),
    )
    assert only_no.only_if is not None

    with pytest.raises(Down, match="no route") as raised:
        fallback(fails)()

    assert raised.value.__notes__ == ["fallback also_fails of a: TimeoutError: slow"]
    assert fallback.counters.counted()["fallback"] == 0


def test_error_raised_again_and_again_does_not_collect_notes():
    error = Down("always the same object")

    def same():
        raise error

    call = Fallback("a", fails)(same)
    for _ in range(5):
        with pytest.raises(Down):
            call()

    assert len(error.__notes__) == 1


@pytest.mark.parametrize(
    "error",
    [CircuitOpen("core->oracle", 5.0), BulkheadFull("llm", "queue is full"), TimeoutError()],
)
def test_refusals_and_timeouts_are_answered_for(error):
    def refused():
        raise error

    assert Fallback("a", default=0).run(refused).value == 0


def test_error_outside_of_on_is_raised():
    fallback = Fallback("a", default=0, on=(TimeoutError, ConnectionError))
    by_choice = Fallback("a", default=0, on=lambda error: "route" in str(error))

    assert fallback(fails)() == 0
    assert by_choice(fails)() == 0
    for one in (fallback, by_choice):
        with pytest.raises(KeyError):
            one({}.__getitem__)("missing")


def test_catastrophic_failure_ends_the_chain():
    class Leaked(Catastrophic):
        pass

    def leaks():
        raise Leaked("other tenants' rows")

    calls = []
    with pytest.raises(Leaked):
        Fallback("a", calls.append, default=0, on=Exception)(leaks)()
    with pytest.raises(Leaked):
        Fallback("a", leaks, lambda: calls.append("next"), default=0)(fails)()

    assert calls == []


def test_group_with_a_catastrophic_failure_in_it_is_raised():
    def grouped():
        raise ExceptionGroup("two", [Down("a"), Catastrophic("b")])

    with pytest.raises(ExceptionGroup):
        Fallback("a", default=0)(grouped)()

    def harmless():
        raise ExceptionGroup("two", [Down("a"), Down("b")])

    assert Fallback("a", default=0, on=ConnectionError)(harmless)() == 0


def test_engaged_switch_is_answered_only_with_on_switch():
    def stopped():
        raise SwitchEngaged("segment:finance", "leak in the answers")

    with pytest.raises(SwitchEngaged):
        Fallback("a", default=0)(stopped)()
    with pytest.raises(SwitchEngaged):
        Fallback("a", stopped, default=0)(fails)()

    assert Fallback("a", default=0, on_switch=True, on=TimeoutError)(stopped)() == 0


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(1), asyncio.CancelledError()])
def test_end_of_the_program_or_the_task_is_never_answered_for(error):
    def ends():
        raise error

    with pytest.raises(type(error)):
        Fallback("a", default=0, on=BaseException)(ends)()


def test_answer_that_is_not_good_counts_as_failed_a_targets_too():
    fallback = Fallback("a", lambda: "", lambda: "long enough", default="nothing", is_good=bool)

    answer = fallback.run(lambda: "")

    assert answer.value == "long enough"
    assert [cause.split(":")[0] for cause in answer.causes] == ["NotGood", "NotGood"]


def test_cache_gives_the_last_good_answer_of_the_same_arguments_and_says_so():
    clock = Clock()
    works = True

    def ask(question):
        if not works:
            fails()
        return f"answer to {question}"

    fallback = Fallback("a", cache=MemoryCache(60, clock=clock), default="nothing")
    decorated = fallback(ask)
    decorated("why")
    works = False

    assert decorated("why") == "answer to why"
    assert latest_answer() == Answer("answer to why", "cache", True, ("Down: no route to host",))
    assert decorated("what") == "nothing"
    clock.goes(60)
    assert decorated("why") == "nothing"
    assert fallback.count_answers() == {"cache": 1, "default": 2}


def test_answer_of_a_fallback_is_never_kept_as_good():
    cache = MemoryCache(60)
    works = [False, True, False]

    def ask():
        return "fresh" if works.pop(0) else fails()

    decorated = Fallback("a", FallbackTarget(name="claude", call=lambda: "stand-in"), cache=cache)(
        ask
    )
    decorated()
    assert not cache._entries

    last_good = Fallback("a", cache=cache)(ask)
    assert last_good() == "fresh"
    assert last_good() == "fresh"
    assert latest_answer().source == "cache"


def test_partial_answer_inside_is_neither_kept_nor_shown_as_whole():
    cache = MemoryCache(60)
    inner = Fallback("inner", default=[])(fails)

    @Fallback("outer", cache=cache)
    def page():
        return {"rows": inner()}

    assert page() == {"rows": []}
    assert latest_answer() == Answer({"rows": []}, "call", True, ())
    assert not cache._entries


def test_two_functions_of_one_fallback_do_not_share_answers():
    fallback = Fallback("a", cache=MemoryCache(60), default="nothing")
    works = True

    def one(n):
        return "one" if works else fails()

    def other(n):
        return "other" if works else fails()

    first, second = fallback(one), fallback(other)
    first(1)
    works = False

    assert second(1) == "nothing"
    assert first(1) == "one"
    assert first(True) == "nothing"


def test_functions_created_per_call_have_keys_of_their_own():
    fallback = Fallback("a", cache=MemoryCache(60), default="nothing")
    for user in ("ada", "bob"):
        fallback.run(lambda user=user: f"secret of {user}")

    def ask(user, works):
        return fallback.run(lambda: f"secret of {user}" if works else fails()).value

    assert ask("ada", True) == "secret of ada"
    assert ask("bob", False) == "nothing"


def test_methods_of_two_objects_are_not_mixed_up_by_the_cache():
    fallback = Fallback("a", cache=MemoryCache(60), default="nothing")

    class Client:
        works = True

        def __init__(self, user):
            self.user = user

        def ask(self):
            return self.user if self.works else fails()

        @fallback
        def decorated(self):
            return self.ask()

    ada, bob = Client("ada"), Client("bob")
    fallback.run(ada.ask)
    ada.decorated()
    Client.works = False

    assert fallback.run(bob.ask).value == "nothing"
    assert bob.decorated() == "nothing"
    assert fallback.run(ada.ask).value == "ada"
    assert ada.decorated() == "ada"


def test_cache_key_selects_the_arguments_of_an_answer():
    cache = MemoryCache(60)
    fallback = Fallback("a", cache=cache, cache_key=lambda question, tenant: (tenant, question))
    works = True

    @fallback
    def ask(question, tenant, connection):
        return tenant if works else fails()

    ask("why", "t1", object())
    works = False

    assert ask("why", tenant="t1", connection=object()) == "t1"
    assert list(cache._entries) == [("t1", "why")]
    with pytest.raises(Down):
        ask("why", "t2", object())


def test_cache_that_fails_harms_no_call_and_is_complained_of_once(caplog):
    class Broken:
        def get(self, key):
            raise OSError("redis://user:secret@cache is away")

        def put(self, key, value):
            raise OSError("redis://user:secret@cache is away")

    fallback = Fallback("a", cache=Broken(), default="nothing")

    assert fallback.run(lambda: "fresh").value == "fresh"
    assert fallback.run(fails).value == "nothing"
    assert fallback.run(lambda: "fresh").value == "fresh"

    messages = [record.getMessage() for record in caplog.records if "cache" in record.getMessage()]
    assert messages == ["switchgear: the cache of fallback a failed: OSError"]


def test_arguments_that_no_key_can_be_made_of_are_simply_not_kept():
    ask = Fallback("a", cache=MemoryCache(60), default="nothing")(lambda rows: len(rows))

    assert ask([1, 2]) == 2


def test_memory_cache_keeps_the_latest_and_no_more_than_it_may():
    cache = MemoryCache(60, max_entries=2)
    for key in "ab":
        cache.put(key, key)
    cache.get("a")
    cache.put("c", None)

    assert (cache.get("a"), cache.get("b"), cache.get("c")) == ("a", MISSING, None)
    with pytest.raises(ValueError, match="seconds must be above 0"):
        MemoryCache(0)


def test_coroutine_functions_await_targets_and_caches_that_are_asynchronous():
    class Slow:
        def __init__(self):
            self.kept = {}

        async def get(self, key):
            await asyncio.sleep(0)
            return self.kept.get(key, MISSING)

        async def put(self, key, value):
            await asyncio.sleep(0)
            self.kept[key] = value

    works = True

    async def ask_target(question):
        await asyncio.sleep(0)
        return question if works else fails()

    async def target(question, cause):
        await asyncio.sleep(0)
        if question == "why":
            raise TimeoutError("slow")
        return f"target for {question}"

    async def scene():
        nonlocal works
        fallback = Fallback("a", target, lambda question: fails(), cache=Slow())
        ask = fallback(ask_target)
        assert asyncio.iscoroutinefunction(ask)
        assert await ask("why") == "why"
        works = False
        assert await ask("why") == "why"
        assert latest_answer().source == "cache"
        assert await ask("what") == "target for what"
        assert (await fallback.arun(ask_target, "which")).source == "target"

    asyncio.run(scene())


def test_cancelled_call_and_cancelled_target_end_the_task():
    async def scene(call, *targets):
        task = asyncio.ensure_future(Fallback("a", *targets, default=0)(call)())
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    async def hangs():
        await asyncio.sleep(60)

    async def afails():
        fails()

    asyncio.run(scene(hangs))
    asyncio.run(scene(afails, hangs))


def test_function_can_not_have_a_target_that_must_be_awaited():
    async def target():
        return 1

    with pytest.raises(TypeError, match="target can only be awaited"):
        Fallback("a", target)(fails)
    late = Fallback("a", lambda: target(), default=0).run(fails)
    assert late.value == 0
    assert "coroutine" in late.causes[1]


def test_target_that_is_not_callable_is_refused():
    with pytest.raises(TypeError, match="must be callable"):
        Fallback("a", 5)


def test_default_is_used_when_no_time_is_left_for_targets():
    calls = []
    fallback = Fallback("a", lambda: calls.append(1), default="nothing")

    with Deadline(0.0001) as _:
        asyncio.run(asyncio.sleep(0.01))
        answer = fallback.run(fails)

    assert answer.value == "nothing"
    assert calls == []


def test_block_returns_its_value_or_the_default():
    fallback = Fallback("a", default="nothing")

    with fallback.catching() as held:
        held.value = "something"
    assert (held.value, held.answer.source) == ("something", "call")

    with fallback.catching("at least this") as held:
        held.value = fails()
    assert held.value == "at least this"
    assert held.answer == Answer("at least this", "default", True, ("Down: no route to host",))
    assert fallback.counters.counted()["fallback"] == 1

    with pytest.raises(Catastrophic), fallback.catching():
        raise Catastrophic("leak")
    with pytest.raises(Down), Fallback("a").catching():
        fails()

    async def scene():
        async with fallback.catching(1) as held:
            fails()
        return held.value

    assert asyncio.run(scene()) == 1


def test_arguments_are_not_shown():
    answer = Fallback("a", default="Not now.").run(fails, "my question")

    assert "my question" not in repr(answer)


def test_same_fallback_counts_for_each_policy_that_has_it():
    fallback = Fallback("mine", default=0)
    counters = Counters()
    of_policy = fallback.counted_as("core->oracle", counters)

    of_policy.run(fails)

    assert counters.counted()["fallback"] == 1
    assert fallback.counters.counted()["fallback"] == 0
    assert fallback.count_answers() == {"default": 1}


def test_guard_inside_is_not_circumvented():
    gear = Switchgear(None, service="core", force_engaged=["segment:finance"])
    guarded = Fallback("a", default=0)(gear.guard(segment="finance")(fails))

    with pytest.raises(SwitchEngaged):
        guarded()
    gear.close()


def test_unanswered_call_clears_the_latest_answer():
    Fallback("a", default=0).run(fails)

    with pytest.raises(Down):
        Fallback("a")(fails)()

    assert latest_answer() is None


def test_condition_of_a_target_that_fails_is_a_target_that_failed():
    target = FallbackTarget(name="claude", call=lambda: "never", only_if=lambda: {}["KEY"])

    answer = Fallback("a", target, default="nothing").run(fails)

    assert answer.value == "nothing"
    assert answer.causes == ("Down: no route to host", "KeyError: 'KEY'")
