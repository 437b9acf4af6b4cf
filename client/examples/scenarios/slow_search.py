"""Scenario: a search index responds slowly; a timeout and a bulkhead contain the damage.

Each search has 0.2 s, and at most four run at once; further searches are rejected at once. Answers
that need no search are not slowed down.
"""

import asyncio
import time
from collections import Counter

from switchgear import BulkheadFull, BulkheadParameters, Switchgear

# A real service calls Switchgear.from_env(); the console can change these settings.
gear = Switchgear(None)
search_policy = gear.policy(
    "chat->search", timeout_seconds=0.2, bulkhead=BulkheadParameters(limit=4)
)


@search_policy
async def search(words: str) -> list[str]:
    await asyncio.sleep(5)  # It is being rebuilt.
    return [words]


async def visit(number: int) -> str:
    if number % 2:
        return "answered without a search"
    try:
        await search(f"words {number}")
    except TimeoutError:
        return "ended after 0.2 s"
    except BulkheadFull:
        return "turned away at once"
    return "answered"


async def main() -> None:
    began = time.monotonic()
    outcomes = Counter(await asyncio.gather(*map(visit, range(20))))
    for outcome, count in sorted(outcomes.items()):
        print(f"{count} {outcome}")
    print("all within two seconds:", time.monotonic() - began < 2)


asyncio.run(main())
