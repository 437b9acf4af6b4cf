"""The table of all policy parameters with their types, limits and defaults.

Pure. If a section (breaker, retry, …) is null, the settings in the calling service's code apply.
In a section that is not null, missing parameters get their defaults.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["whole", "number", "text", "choice", "words", "chain"]

COLUMNS = (
    "protocol", "criticality", "mode", "owner", "runbook_url", "notes", "managed_by",
)  # fmt: skip
"""Parameters that a dependency's row also has as columns."""
CRITICALITIES = ("critical", "high", "medium", "low")
MODES = ("sync", "async")
COUNT, TIME = "count", "time"
FALLBACK_MODES = ("error", "cache", "provider", "default", "none")
BACKOFFS = ("exponential", "linear")
WINDOW_SIZES = {COUNT: 100, TIME: 60}
"""Default sizes: calls for a count window, seconds for a time window."""
TIERS = {
    "critical": {"limit": 5, "queue": 10, "queue_seconds": 300},
    "standard": {"limit": 3, "queue": 5, "queue_seconds": 120},
    "optional": {"limit": 2, "queue": 3, "queue_seconds": 60},
}
BULKHEAD_MODES = ("fixed", "adaptive")
"""Modes of a bulkhead; null means fixed."""
QUEUE_SECONDS = 5
"""Default wait in a queue, the same as in the client library."""
RETRIED = (
    408, 429, 500, 502, 503, 504, "connection_error", "timeout",
    "rate_limit_exceeded", "model_overloaded", "context_length_exceeded",
)  # fmt: skip
NEVER_RETRIED = (
    400, 401, 403, 404, "invalid_api_key", "content_policy_violation", "invalid_request_error",
)  # fmt: skip

UNITS = ("_size", "_calls", "_count", "attempts", "failures", "tokens")
"""Endings of parameter names from which the unit is clear."""
LABELS = {
    "runbook_url": "Runbook",
    "breaker.slow_call_seconds": "Slow call",
    "breaker.open_seconds": "Open time",
    "breaker.open_max_seconds": "Maximum open time",
    "breaker.half_open_calls": "Half-open calls",
    "breaker.half_open_concurrent": "Concurrent half-open calls",
    "breaker.half_open_max_seconds": "Maximum time of a probe",
    "retry.base_seconds": "First delay",
    "retry.cap_seconds": "Maximum delay",
    "retry.retry_after_max_seconds": "Longest Retry-After",
    "retry.retry_on": "Retry",
    "retry.never": "Never retry",
    "retry.then": "After the last attempt",
    "bulkhead.limit": "Concurrent calls",
    "bulkhead.per_key_limit": "Concurrent calls per key",
    "bulkhead.queue_seconds": "Maximum wait",
    "fallback.message_en": "Message in English",
    "budget.per_key_tokens": "Tokens per key",
}
"""Labels of parameters whose name is unclear to readers."""
A_DAY = 86_400.0
MIN_SECONDS = 0.001
MAX_TOKENS = 10**12


@dataclass(frozen=True)
class Parameter:
    """A parameter of a policy; `least` and `most` are inclusive limits.

    For a text `most` is the maximum length, for a list the maximum number of items. Null is allowed
    if the default is null.
    """

    path: str
    kind: Kind
    help: str
    default: Any = None
    unit: str = ""
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()

    @property
    def section(self) -> str:
        """The section (`breaker` for `breaker.window_size`); empty outside of all sections."""
        return self.path.rpartition(".")[0]

    @property
    def name(self) -> str:
        return self.path.rpartition(".")[2]

    @property
    def label(self) -> str:
        """The parameter in words, without its unit of time."""
        name = self.name.removesuffix("_seconds").removesuffix("_ms")
        return LABELS.get(self.path) or name.replace("_", " ").capitalize()

    @property
    def unsaid_unit(self) -> str:
        """The unit of the values; empty if the label includes it."""
        return "" if self.name.endswith(UNITS) else self.unit


def _seconds(
    path: str, default: float | None, help: str, *, least: float = 0.0, most: float = A_DAY
) -> Parameter:
    return Parameter(path, "number", help, default, "s", least, most)


def _text(path: str, longest: int, help: str, default: str = "") -> Parameter:
    return Parameter(path, "text", help, default, most=longest)


_GENERAL = (
    _text("protocol", 40, "Protocol: http, https, bolt, asyncpg, redis, …"),
    Parameter(
        "timeout_ms",
        "whole",
        "Timeout of one attempt; null if the caller sets its own.",
        None,
        "ms",
        1,
        A_DAY * 1000,
    ),
    Parameter("criticality", "choice", "Impact of an outage.", "medium", choices=CRITICALITIES),
    Parameter(
        "mode", "choice", "Whether the caller waits for the response.", "sync", choices=MODES
    ),
    _text("runbook_url", 500, "Runbook for an outage: http:// or https://."),
    _text("owner", 120, "Owner of the dependency."),
    _text("managed_by", 60, "Side that manages the breaker.", "caller"),
    _text("notes", 4000, "Notes."),
)
_BREAKER = (
    Parameter(
        "breaker.window_type", "choice", "Unit of the window.", COUNT, choices=(COUNT, TIME)
    ),
    Parameter(
        "breaker.window_size", "whole", "Size of the window; 100 calls or 60 s by default.",
        WINDOW_SIZES, "calls or s", 1, 86_400,
    ),
    Parameter(
        "breaker.minimum_calls", "whole", "With fewer calls, the breaker doesn't open.", 20,
        "calls", 1, 1_000_000,
    ),
    Parameter(
        "breaker.failure_rate", "number", "Opens at this failure rate.", 0.5, "", 0.0001, 1
    ),
    Parameter(
        "breaker.failure_count", "whole",
        "Opens at this number of failures in the window; if set, rates are ignored.", None,
        "failures", 1, 1_000_000,
    ),
    Parameter(
        "breaker.consecutive_failures", "whole",
        "Also opens at this number of consecutive failures, but not below minimum_calls.", None,
        "failures", 1, 1_000_000,
    ),
    Parameter(
        "breaker.slow_call_seconds", "number", "A call that takes longer is slow.", None, "s",
        MIN_SECONDS, A_DAY,
    ),
    Parameter(
        "breaker.slow_call_rate", "number", "Opens at this share of slow calls.", 1, "", 0.0001, 1
    ),
    _seconds("breaker.open_seconds", 30, "Time open before probes start.",
             least=MIN_SECONDS),
    Parameter(
        "breaker.open_multiplier", "number", "Growth of the open time at each reopening.", 1.5, "×",
        1, 100,
    ),
    _seconds("breaker.open_max_seconds", 300, "Maximum open time.",
             least=MIN_SECONDS),
    Parameter(
        "breaker.open_jitter", "number", "Random variation of the open time.", 0.2, "", 0, 1
    ),
    Parameter(
        "breaker.half_open_calls", "whole", "Number of probes that decide.", 5, "calls", 1, 10_000
    ),
    Parameter(
        "breaker.half_open_concurrent", "whole", "Concurrent probes.", 1, "calls", 1, 10_000
    ),
    _seconds("breaker.half_open_max_seconds", 0,
             "A probe that runs longer reopens the breaker; 0 waits for all probes."),
)  # fmt: skip
_RETRY = (
    Parameter(
        "retry.attempts", "whole", "Total attempts, including the first.", 3, "tries", 1, 100
    ),
    Parameter("retry.backoff", "choice", "Growth of the delays.", "exponential", choices=BACKOFFS),
    _seconds(
        "retry.base_seconds", 0.1, "Cap of the first delay; each delay is random below its cap."
    ),
    _seconds("retry.cap_seconds", 5, "Maximum delay."),
    _seconds("retry.retry_after_max_seconds", 30, "A longer Retry-After counts as a failure."),
    Parameter(
        "retry.budget_rate", "number", "Retry budget: retries per call, over 10 s.", 0.2, "", 0, 10
    ),
    Parameter(
        "retry.budget_per_second",
        "number",
        "Retries per 10 s allowed in addition.",
        10,
        "/s",
        0,
        1_000_000,
    ),
    Parameter(
        "retry.retry_on", "words", "Status codes and error names to retry.", RETRIED, most=100
    ),
    Parameter(
        "retry.never",
        "words",
        "Status codes and error names never to retry.",
        NEVER_RETRIED,
        most=100,
    ),
    _text("retry.then", 200, "Destination after the last failed attempt."),
)
_BULKHEAD = (
    Parameter(
        "bulkhead.tier", "choice", "Defaults for limit, queue and wait.",
        None, choices=tuple(TIERS),
    ),
    Parameter("bulkhead.limit", "whole", "Concurrent calls.", None, "calls", 1, 1_000_000),
    Parameter("bulkhead.queue", "whole", "Maximum queue length.", 0, "calls", 0, 1_000_000),
    _seconds("bulkhead.queue_seconds", None, "Maximum wait for a permit; 5 s by default."),
    Parameter(
        "bulkhead.per_key_limit", "whole", "Concurrent calls for one key, such as a user.", None,
        "calls", 1, 1_000_000,
    ),
    Parameter(
        "bulkhead.mode", "choice",
        "fixed (default) or adaptive: the limit follows latency and errors.",
        None, choices=BULKHEAD_MODES,
    ),
    Parameter(
        "bulkhead.min_limit", "whole", "Lower bound of an adaptive limit; limit / 4 by default.",
        None, "calls", 1, 1_000_000,
    ),
    Parameter(
        "bulkhead.max_limit", "whole", "Upper bound of an adaptive limit; limit × 4 by default.",
        None, "calls", 1, 1_000_000,
    ),
)  # fmt: skip
_FALLBACK = (
    Parameter("fallback.mode", "choice", "Kind of fallback.", "error", choices=FALLBACK_MODES),
    _text("fallback.failure_mode", 300, "Condition for the fallback."),
    _text("fallback.action", 1000, "Description of the fallback."),
    _text("fallback.code", 80, "Error code returned to the client."),
    Parameter("fallback.status", "whole", "HTTP status of the error.", None, "", 400, 599),
    _text("fallback.message", 1000, "Message to users, in their language."),
    _text("fallback.message_en", 1000, "The message in English, for operators."),
    Parameter("fallback.chain", "chain", "Fallback targets, in order.", (), most=20),
    _text("fallback.user_impact", 1000, "Effect on users: what is lost and what still works."),
)
_BUDGET = (
    Parameter(
        "budget.tokens", "whole", "Token limit in the window, for all calls of a process.",
        None, "tokens", 1, MAX_TOKENS,
    ),
    _seconds("budget.window_seconds", 60, "Length of the window.", least=1, most=31 * A_DAY),
    Parameter(
        "budget.per_key_tokens", "whole", "Token limit in the window for one key, such as a user.",
        None, "tokens", 1, MAX_TOKENS,
    ),
)  # fmt: skip

PARAMETERS: tuple[Parameter, ...] = (
    *_GENERAL, *_BREAKER, *_RETRY, *_BULKHEAD, *_FALLBACK, *_BUDGET,
)  # fmt: skip
SECTIONS = ("breaker", "retry", "bulkhead", "fallback", "budget")
ALIASES = {"failure_threshold": "failure_count", "window_seconds": "window_size"}
"""Other names of breaker parameters; `window_seconds` also selects a time window."""


def section_parameters(section: str) -> Iterator[Parameter]:
    """Return the parameters of a policy section, in the order of `PARAMETERS`."""
    return (one for one in PARAMETERS if one.section == section)
