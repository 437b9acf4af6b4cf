"""Code of a service that both type checkers reject, at each marked line."""

from switchgear import Policy, Switchgear
from switchgear.testing import Console, engaged

gear = Switchgear("https://switchgear.example", "sg_token")


@gear.guard(feature="chat", targeting_key=lambda user: user)
def answer(user: str, *, loud: bool = False) -> str:
    return user


@gear.guard(feature="chat")
async def answer_later(user: str) -> str:
    return user


class Service:
    @gear.guard(feature="chat")
    def method(self, question: str) -> str:
        return question


class NoQuery:
    segment = 7


async def story() -> tuple[int, str]:
    number: int = await answer_later("kim")  # refused
    await answer_later(1)  # refused
    text: str = answer_later("kim")  # refused
    return number, text


answer(1)  # refused
answer("kim", 7)  # refused
answer("kim", soft=True)  # refused
answer()  # refused
size: int = answer("kim")  # refused
Service().method(1)  # refused
gear.guard("chat")  # refused
gear.guard(feature=7.5)  # refused
gear.guard(feature="chat", unknown="blok")  # refused
gear.guard(feture="chat")  # refused
gear.guard(targeting_key=7.5)  # refused
gear.allowed("chat")  # refused
gear.allowed(feature=7.5)  # refused
gear.check_allowed(NoQuery())  # refused
engaged(7)  # refused
Console().engage("feature:chat", on_expiry="never")  # refused


@gear.policy("core->oracle", retry=None)
def ask(question: str) -> int:
    return len(question)


ask(1)  # refused
text_of: str = ask("hello")  # refused
gear.policy()  # refused
gear.policy("core->oracle", retries=3)  # refused
gear.policy("core->oracle", timeout_seconds="1 s")  # refused
gear.policy("core->oracle", bulkhead="gold")  # refused
gear.policy("core->oracle", unknown="blok")  # refused
gear.breaker("core->oracle", failure_rate=0.5)  # refused
Policy("core->oracle", segment="finance")  # refused
Console().force("core->oracle", "reset")  # refused


policy = Policy("core->oracle")


async def await_calls() -> None:
    await policy.arun(answer_later)  # refused
    await policy.arun(answer_later, 7)  # refused
    await policy.arun(answer, "kim")  # refused


policy.run(answer)  # refused
policy.run(answer, 7)  # refused
policy.run(answer, "kim", soft=True)  # refused
policy.run(answer, user="kim", loud="yes")  # refused
length: int = policy.run(answer, "kim").value  # refused
