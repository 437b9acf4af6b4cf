"""Code of a service that both type checkers accept, with the right types."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import assert_type
from uuid import UUID

from switchgear import (
    Answer,
    Breaker,
    BreakerParameters,
    Bulkhead,
    Decision,
    Fallback,
    Policy,
    Retry,
    RetryParameters,
    Status,
    SwitchEngaged,
    Switchgear,
    Timeout,
    from_env,
)
from switchgear.testing import Console, FakeClock, engaged

gear = Switchgear("https://switchgear.example", "sg_token", service="core")
assert_type(from_env(), Switchgear)
assert_type(gear.allowed(segment="finance", experiments=["a", "b"], targeting_key="kim"), bool)
assert_type(gear.check(feature="chat"), Decision)
assert_type(gear.allowed(segment=7, experiments=(8, "b"), targeting_key=UUID(int=1)), bool)
assert_type(gear.status(), Status)


@dataclass
class User:
    id: int
    department: str


@gear.guard(feature="chat", targeting_key=lambda user: user.id)
def answer(user: User, question: str, *, loud: bool = False) -> list[str]:
    return [question]


assert_type(answer(User(1, "finance"), "hello", loud=True), list[str])
plain: Callable[[User, str], list[str]] = answer


@gear.guard(segment=lambda user: user.department, unknown="block")
async def answer_later(user: User) -> int:
    return user.id


@gear.guard(experiments=("blue", "green"))
def letters(text: str) -> Iterator[str]:
    yield from text


@gear.guard(experiments={"blue"})
async def letters_later(text: str) -> AsyncIterator[str]:
    yield text


class Service:
    @gear.guard(feature="chat")
    def method(self, question: str) -> str:
        return question

    @gear.guard(feature="chat")
    async def later(self, question: str) -> str:
        return question

    @classmethod
    @gear.guard(feature="chat")
    def build(cls, question: str) -> "Service":
        return cls()

    @staticmethod
    @gear.guard(feature="chat")
    def static(question: str) -> bytes:
        return question.encode()

    @property
    @gear.guard(feature="chat")
    def size(self) -> float:
        return 1.5


assert_type(Service().method("hello"), str)
assert_type(Service.build("hello"), Service)
assert_type(Service.static("hello"), bytes)
assert_type(Service().size, float)


@gear.guard(feature="chat")
@engaged("segment:finance", reason="a rehearsal")
def both(number: int) -> str:
    return str(number)


assert_type(both(1), str)


async def story() -> None:
    waiting: Awaitable[int] = answer_later(User(1, "finance"))
    assert_type(await waiting, int)
    assert_type(await Service().later("hello"), str)
    assert_type([letter async for letter in letters_later("abc")], list[str])
    async with gear.guard(feature="chat") as decision:
        assert_type(decision, Decision)
    async with Switchgear(None) as client:
        assert_type(client, Switchgear)
    assert_type(await gear.ready(), bool)


assert_type(list(letters("abc")), list[str])
with gear.guard(feature="chat") as entered:
    assert_type(entered.switch, str | None)
try:
    answer(User(1, "finance"), "hello")
except SwitchEngaged as stopped:
    assert_type(stopped.decision, Decision)
    assert_type(stopped.switch, str | None)
    assert_type(stopped.reason, str | None)


def total() -> int:
    with gear.guard(feature="chat"):  # It swallows nothing, so this function always returns.
        return 1


@dataclass
class Query:
    segment: dict[str, str]
    intent: str | None
    experiments: list[str]


assert_type(gear.check_allowed(Query({}, None, [])), tuple[bool, str | None])

clock = FakeClock()
console = Console(clock)
console.engage("feature:chat", reason="a rehearsal", expires_in=60, on_expiry="release")
console.ramp("feature:chat", 12.5)
assert_type(console.client(service="core"), Switchgear)
console.configure("core->oracle", {"timeout_ms": 500})
console.force("core->oracle", "forced_open", reason="a rehearsal", expires_in=60)
console.unforce("core->oracle")

policy = gear.policy(
    "core->oracle",
    segment="finance",
    targeting_key=lambda user: user.id,
    timeout_seconds=1,
    deadline_seconds=5.5,
    breaker=BreakerParameters(failure_count=5),
    retry=RetryParameters(attempts=2),
    bulkhead="critical",
    fallback=Fallback("cached", default=None),
    key=lambda user: user.id,
    ignore=(KeyError,),
)
assert_type(policy, Policy)


@policy
def ask(user: User, question: str) -> list[str]:
    return [question]


@policy
async def ask_later(user: User, *, question: str) -> int:
    return len(question)


class Client:
    @policy
    def method(self, user: User) -> bytes:
        return b""

    @Policy("core->synapse")
    @Breaker("b")
    @Retry()
    @Timeout(1)
    async def later(self, user: User) -> float:
        return 1.5


assert_type(ask(User(1, "finance"), question="hello"), list[str])
assert_type(Client().method(User(1, "finance")), bytes)
assert_type(policy.run(ask, User(1, "finance"), "hello"), Answer[list[str]])
assert_type(policy.run(ask, user=User(1, "finance"), question="hello"), Answer[list[str]])
assert_type(policy.run(Client().method, User(1, "finance")), Answer[bytes])
assert_type(policy.run(answer, User(1, "finance"), "hello", loud=True).value, list[str])
assert_type(policy.timeout_seconds, float | None)
assert_type(gear.breaker("core->oracle", parameters=BreakerParameters()), Breaker)
assert_type(gear.bulkhead("core->oracle", "optional"), Bulkhead)


async def ask_all() -> int:
    assert_type(await Client().later(User(1, "finance")), float)
    answered = await policy.arun(ask_later, User(1, "finance"), question="hello")
    assert_type(answered, Answer[int])
    async for attempt in policy:
        async with attempt:
            assert_type(attempt.number, int)
    async with policy:
        return answered.value


def blocks() -> None:
    for attempt in policy:
        with attempt:
            assert_type(attempt.number, int)
    with policy as entered_policy:
        assert_type(entered_policy, Policy)
