"""Cache keys: an answer is only for the same function, object and arguments."""

import asyncio
import functools
from dataclasses import dataclass, field

import pytest

from switchgear.patterns.breaker import Breaker
from switchgear.patterns.caches import MemoryCache
from switchgear.patterns.fallback import Fallback
from switchgear.patterns.parameters import RetryParameters
from switchgear.patterns.retry import Retry
from switchgear.policies.policy import Policy
from switchgear.testing import Console

breaker = Breaker()
breaker.force("disabled")


class Client:
    def __init__(self, user):
        self.user = user
        self.is_down = False

    def _read_secret(self):
        if self.is_down:
            raise ConnectionError
        return f"secret of {self.user}"

    def bare(self, what):
        return self._read_secret()

    @breaker
    def decorated(self, what):
        return self._read_secret()

    @Retry("a", RetryParameters(attempts=2, base_seconds=0.001))
    @breaker
    def decorated_twice(self, what):
        return self._read_secret()

    async def bare_later(self, what):
        return self._read_secret()

    @breaker
    async def decorated_later(self, what):
        return self._read_secret()


def caching_fallback():
    return Fallback("a", cache=MemoryCache(60), default="nothing")


WAYS = {
    "fallback.run": lambda fallback: lambda f: fallback.run(f, "x").value,
    "decorator": lambda fallback: lambda f: fallback(f)("x"),
    "decorator in a decorator": lambda fallback: lambda f: fallback(breaker(f))("x"),
    "policy.run": lambda fallback: run_of(Policy("a", fallback=fallback)),
    "policy as a decorator": lambda fallback: decorator_of(Policy("a", fallback=fallback)),
}


def run_of(policy):
    return lambda f: policy.run(f, "x").value


def decorator_of(policy):
    return lambda f: policy(f)("x")


@pytest.mark.parametrize("name", ["bare", "decorated", "decorated_twice"])
@pytest.mark.parametrize("way", WAYS)
def test_method_of_one_object_is_never_answered_by_that_of_another(way, name):
    ask = WAYS[way](caching_fallback())
    ada, bob = Client("ada"), Client("bob")
    assert ask(getattr(ada, name)) == "secret of ada"
    ada.is_down = bob.is_down = True

    assert ask(getattr(bob, name)) == "nothing"
    if way != "decorator in a decorator":  # Which is a function made anew.
        assert ask(getattr(ada, name)) == "secret of ada"


@pytest.mark.parametrize("name", ["bare_later", "decorated_later"])
def test_nor_is_that_of_a_coroutine_function(name):
    policy, fallback = Policy("a", fallback=caching_fallback()), caching_fallback()

    async def ask_every_way(client):
        method = getattr(client, name)
        by_policy = (await policy.arun(method, "x")).value
        by_fallback = (await fallback.arun(method, "x")).value
        return by_policy, by_fallback, await fallback(method)("x"), await policy(method)("x")

    async def story():
        ada, bob = Client("ada"), Client("bob")
        assert await ask_every_way(ada) == ("secret of ada",) * 4
        ada.is_down = bob.is_down = True
        assert await ask_every_way(bob) == ("nothing",) * 4
        assert await ask_every_way(ada) == ("secret of ada",) * 4

    asyncio.run(story())


def test_two_functions_of_one_decorator_with_parameters_do_not_share_answers():
    down = []

    def tenant(name):
        def decorate(function):
            @functools.wraps(function)
            def call(number):
                if name in down:
                    raise ConnectionError
                return f"data of {name}"

            return call

        return decorate

    def base(number): ...

    a, b = tenant("a")(base), tenant("b")(base)
    fallback, policy = caching_fallback(), Policy("a", fallback=caching_fallback())
    assert (fallback(a)(1), policy(a)(1), policy.run(a, 1).value) == ("data of a",) * 3
    down.extend("ab")

    assert (fallback(b)(1), policy(b)(1), policy.run(b, 1).value) == ("nothing",) * 3
    assert (fallback(a)(1), policy(a)(1), policy.run(a, 1).value) == ("data of a",) * 3


@dataclass(frozen=True)
class Equal:
    """An object that equals others of the same address, whoever is signed in."""

    address: str
    user: str = field(compare=False)

    def ask(self):
        return self()

    def __call__(self):
        if down:
            raise ConnectionError
        return self.user


down: list[bool] = []


def test_equal_objects_are_two_all_the_same():
    fallback = caching_fallback()
    ada, bob = Equal("here", "ada"), Equal("here", "bob")
    fallback.run(ada.ask)
    fallback.run(ada)
    down.append(True)
    try:
        assert (fallback.run(bob.ask).value, fallback.run(bob).value) == ("nothing", "nothing")
        assert (fallback.run(ada.ask).value, fallback.run(ada).value) == ("ada", "ada")
    finally:
        down.clear()


def test_object_that_is_gone_is_not_mistaken_for_one_in_its_place():
    fallback = caching_fallback()
    for _ in range(50):  # Each begins where the last one has just been, if nothing held that.
        first = Client("ada")
        fallback.run(first.bare, "x")
        del first
        second = Client("bob")
        second.is_down = True
        assert fallback.run(second.bare, "x").value == "nothing"


@pytest.mark.parametrize(
    ("argument", "other"),
    [
        (1, True),
        (1, 1.0),
        ((1,), (True,)),
        ((0, (1, 2)), (0, (1.0, 2))),
        (frozenset({1}), frozenset({True})),
        ((frozenset({(1,)}),), (frozenset({(1.0,)}),)),
    ],
)
def test_arguments_of_other_types_are_other_arguments_however_deep(argument, other):
    fallback = caching_fallback()
    works = True

    @fallback
    def ask(ids, *, also=None):
        if not works:
            raise ConnectionError
        return f"{ids!r} {also!r}"

    ask(argument)
    ask(None, also=argument)
    works = False

    assert (ask(other), ask(None, also=other)) == ("nothing", "nothing")
    assert ask(argument) == f"{argument!r} None"
    assert ask(None, also=argument) == f"None {argument!r}"


def test_rebuilt_policy_keeps_its_cached_answers():
    console = Console()
    policy = console.client(service="core").policy("core->oracle", fallback=caching_fallback())
    works = True

    @policy
    def ask(question):
        if not works:
            raise ConnectionError
        return question

    assert ask("a") == "a"
    console.configure("core->oracle", {"timeout_ms": 500})
    works = False

    assert policy.timeout_seconds == 0.5
    assert (ask("a"), ask("b")) == ("a", "nothing")
