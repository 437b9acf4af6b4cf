"""Scenario: an LLM provider limits calls; they are retried, then sent to another provider.

Retries wait as long as the provider's Retry-After demands. If it keeps rejecting calls, the breaker
opens, and the other provider answers at once until the first one recovers.
"""

from switchgear import BreakerParameters, Fallback, RetryParameters, Switchgear
from switchgear.patterns.fallback_targets import FallbackTarget


class RateLimited(Exception):
    """A provider's error with the status and headers of the response."""

    status_code = 429
    headers = {"Retry-After": "0"}


class Provider:
    def __init__(self, name: str, refusals: int = 0) -> None:
        self.name = name
        self.refusals = refusals
        self.asked = 0

    def complete(self, prompt: str) -> str:
        self.asked += 1
        if self.refusals:
            self.refusals -= 1
            raise RateLimited
        return f"{self.name}: {len(prompt)} letters"


first, second = Provider("first", refusals=2), Provider("second")
# A real service calls Switchgear.from_env(); the console can change these settings.
gear = Switchgear(None)
policy = gear.policy(
    "chat->first",
    deadline_seconds=20,
    retry=RetryParameters(attempts=3, base_seconds=0.01),
    breaker=BreakerParameters(failure_count=5),
    fallback=Fallback("chat", FallbackTarget(name="second", call=second.complete)),
)


def ask(prompt: str) -> None:
    answer = policy.run(first.complete, prompt)
    counted = policy.counters.counted()
    print(
        f"{answer.value!r} by {answer.source}; {first.asked} tries of the first so far,"
        f" {counted['retry']} of them retries; breaker {policy.breaker.state}"
    )


ask("a short limit")
first.refusals = 1000
for number in range(3):
    ask(f"a long limit, {number}")
