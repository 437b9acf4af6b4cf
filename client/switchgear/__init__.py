"""Switchgear's client library: a service that can always ask whether it may go on.

    from switchgear import Switchgear

    gear = Switchgear.from_env()
    if gear.allowed(feature="chat", targeting_key=user_id): ...

    @gear.policy("core->oracle")
    def ask(question: str) -> str: ...

Nothing here raises into a service because the console is slow, wrong or gone. Dead letters of Redis
streams are in :mod:`switchgear.dlq`, what tests need in :mod:`switchgear.testing`.
"""

from switchgear.client import Switchgear
from switchgear.deciding.evaluate import Decision
from switchgear.following.announcer import Change
from switchgear.guards import SwitchEngaged
from switchgear.patterns.answers import Answer
from switchgear.patterns.breaker import Breaker
from switchgear.patterns.bulkhead import Bulkhead
from switchgear.patterns.deadline import Deadline, DeadlineExceeded
from switchgear.patterns.fallback import Fallback
from switchgear.patterns.hedging import Hedge
from switchgear.patterns.parameters import BreakerParameters, BulkheadParameters, RetryParameters
from switchgear.patterns.retry import Retry
from switchgear.patterns.timeout import Timeout
from switchgear.policies.policy import Policy
from switchgear.refusals import BulkheadFull, CircuitOpen, Refused
from switchgear.status import Status

__version__ = "0.3.0"

from_env = Switchgear.from_env

__all__ = [
    "Answer",
    "Breaker",
    "BreakerParameters",
    "Bulkhead",
    "BulkheadFull",
    "BulkheadParameters",
    "Change",
    "CircuitOpen",
    "Deadline",
    "DeadlineExceeded",
    "Decision",
    "Fallback",
    "Hedge",
    "Policy",
    "Refused",
    "Retry",
    "RetryParameters",
    "Status",
    "SwitchEngaged",
    "Switchgear",
    "Timeout",
    "from_env",
]
