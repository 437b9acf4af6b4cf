"""Switchgear's client library: kill switches and resilience patterns for services.

    from switchgear import Switchgear

    gear = Switchgear.from_env()
    if gear.allowed(feature="chat", targeting_key=user_id): ...

    @gear.policy("core->oracle")
    def ask(question: str) -> str: ...

No failure of the console is raised into a service. Dead letters of Redis streams are in
:mod:`switchgear.dlq`, test helpers in :mod:`switchgear.testing`.
"""

from typing import TYPE_CHECKING

__version__ = "0.4.0"

if TYPE_CHECKING:
    from switchgear.cancellation import CancelToken as CancelToken
    from switchgear.cancellation import cancel_token as cancel_token
    from switchgear.client import Switchgear as Switchgear
    from switchgear.console.change_notifier import Change as Change
    from switchgear.evaluation.decisions import Decision as Decision
    from switchgear.guards import SwitchEngaged as SwitchEngaged
    from switchgear.patterns.answers import Answer as Answer
    from switchgear.patterns.breaker import Breaker as Breaker
    from switchgear.patterns.bulkhead import Bulkhead as Bulkhead
    from switchgear.patterns.deadline import Deadline as Deadline
    from switchgear.patterns.fallback import Fallback as Fallback
    from switchgear.patterns.hedging import Hedge as Hedge
    from switchgear.patterns.parameters import BreakerParameters as BreakerParameters
    from switchgear.patterns.parameters import BulkheadParameters as BulkheadParameters
    from switchgear.patterns.parameters import RetryParameters as RetryParameters
    from switchgear.patterns.retry import Retry as Retry
    from switchgear.patterns.timeout import Timeout as Timeout
    from switchgear.patterns.timeout_errors import DeadlineExceeded as DeadlineExceeded
    from switchgear.policies.policy import Policy as Policy
    from switchgear.refusals import BulkheadFull as BulkheadFull
    from switchgear.refusals import CircuitOpen as CircuitOpen
    from switchgear.refusals import Refused as Refused
    from switchgear.status import Status as Status

    from_env = Switchgear.from_env
else:
    _MODULES = {
        "Answer": "patterns.answers",
        "Breaker": "patterns.breaker",
        "BreakerParameters": "patterns.parameters",
        "Bulkhead": "patterns.bulkhead",
        "BulkheadFull": "refusals",
        "BulkheadParameters": "patterns.parameters",
        "CancelToken": "cancellation",
        "Change": "console.change_notifier",
        "CircuitOpen": "refusals",
        "Deadline": "patterns.deadline",
        "DeadlineExceeded": "patterns.timeout_errors",
        "Decision": "evaluation.decisions",
        "Fallback": "patterns.fallback",
        "Hedge": "patterns.hedging",
        "Policy": "policies.policy",
        "Refused": "refusals",
        "Retry": "patterns.retry",
        "RetryParameters": "patterns.parameters",
        "Status": "status",
        "SwitchEngaged": "guards",
        "Switchgear": "client",
        "Timeout": "patterns.timeout",
        "cancel_token": "cancellation",
        "from_env": "client",
    }
    """Modules of the public names, imported at their first use."""
    __all__ = list(_MODULES)

    def __getattr__(name: str) -> object:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
