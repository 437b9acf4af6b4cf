"""Scenario: one user sends a thousand questions, and a bulkhead keeps room for other users.

Each user may run two calls at once. Failures are retried within a budget, so that a thousand
failures do not cause three thousand calls.
"""

import asyncio
import contextlib
from collections import Counter

from switchgear import BulkheadFull, BulkheadParameters, RetryParameters, Switchgear

calls = 0

# A real service calls Switchgear.from_env(); the console can change these settings.
gear = Switchgear(None)
asked = gear.policy(
    "chat->model", bulkhead=BulkheadParameters(limit=10, per_key_limit=2), key=lambda user: user
)


@asked
async def ask(user: str) -> str:
    await asyncio.sleep(0.05)
    return "answered"


@gear.policy(
    "chat->archive",
    retry=RetryParameters(attempts=3, base_seconds=0, budget_rate=0.2, budget_per_second=1),
)
def store(_question: int) -> None:
    global calls
    calls += 1
    raise ConnectionError("the archive is away")


async def visit(user: str) -> tuple[str, str]:
    try:
        return user, await ask(user)
    except BulkheadFull:
        return user, "turned away"


async def main() -> None:
    visitors = ["flood"] * 1000 + ["kim", "lee", "choi"]
    outcomes = Counter(await asyncio.gather(*map(visit, visitors)))
    for (user, outcome), count in sorted(outcomes.items()):
        print(f"{user}: {count} {outcome}")


asyncio.run(main())
gear.breaker("chat->archive").force("forced_closed")  # To see the budget alone.
for question in range(1000):
    with contextlib.suppress(ConnectionError):
        store(question)
print("a thousand failures made less than 1300 calls:", calls < 1300)
