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

UNITS = ("_ms", "_seconds", "_size", "_calls", "_count", "attempts", "failures", "tokens")
"""Endings of parameter names from which the unit is clear."""
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
    def unsaid_unit(self) -> str:
        """The unit of the values; empty if the parameter's name includes it."""
        return "" if self.name.endswith(UNITS) else self.unit


def _seconds(
    path: str, default: float | None, help: str, *, least: float = 0.0, most: float = A_DAY
) -> Parameter:
    return Parameter(path, "number", help, default, "s", least, most)


def _text(path: str, longest: int, help: str, default: str = "") -> Parameter:
    return Parameter(path, "text", help, default, most=longest)


_GENERAL = (
    _text("protocol", 40, "How it is called: http, https, bolt, asyncpg, redis, …"),
    Parameter(
        "timeout_ms", "whole", "Of one try; null: the caller's own.", None, "ms", 1, A_DAY * 1000
    ),
    Parameter(
        "criticality", "choice", "How much its loss matters.", "medium", choices=CRITICALITIES
    ),
    Parameter("mode", "choice", "Whether the caller waits for the answer.", "sync", choices=MODES),
    _text("runbook_url", 500, "What to do when it is away: http:// or https://."),
    _text("owner", 120, "Who looks after it."),
    _text("managed_by", 60, "Whose side its breaker is managed on.", "caller"),
    _text("notes", 4000, "What else to know."),
)
_BREAKER = (
    Parameter(
        "breaker.window_type", "choice", "What the window counts.", COUNT, choices=(COUNT, TIME)
    ),
    Parameter(
        "breaker.window_size", "whole", "The last so many calls or seconds; 100 calls or 60 s.",
        WINDOW_SIZES, "calls or s", 1, 86_400,
    ),
    Parameter(
        "breaker.minimum_calls", "whole", "Below it the rate is unknown and nothing opens.", 20,
        "calls", 1, 1_000_000,
    ),
    Parameter(
        "breaker.failure_rate", "number", "Opens at this share of failures.", 0.5, "", 0.0001, 1
    ),
    Parameter(
        "breaker.failure_count", "whole",
        "Opens at so many failures within the window. When set, it alone decides.", None,
        "failures", 1, 1_000_000,
    ),
    Parameter(
        "breaker.consecutive_failures", "whole",
        "Also opens at so many failures in a row, but not below minimum_calls.", None,
        "failures", 1, 1_000_000,
    ),
    Parameter(
        "breaker.slow_call_seconds", "number", "A call is slow if it takes longer.", None, "s",
        MIN_SECONDS, A_DAY,
    ),
    Parameter(
        "breaker.slow_call_rate", "number", "Opens at this share of slow calls.", 1, "", 0.0001, 1
    ),
    _seconds("breaker.open_seconds", 30, "Open for so long before it probes.",
             least=MIN_SECONDS),
    Parameter(
        "breaker.open_multiplier", "number", "Longer by this each time it opens anew.", 1.5, "×",
        1, 100,
    ),
    _seconds("breaker.open_max_seconds", 300, "Never open for longer in one go.",
             least=MIN_SECONDS),
    Parameter(
        "breaker.open_jitter", "number", "So much longer or shorter, by chance.", 0.2, "", 0, 1
    ),
    Parameter(
        "breaker.half_open_calls", "whole", "Probes that decide.", 5, "calls", 1, 10_000
    ),
    Parameter(
        "breaker.half_open_concurrent", "whole", "Probes at once.", 1, "calls", 1, 10_000
    ),
    _seconds("breaker.half_open_max_seconds", 0,
             "A probe that runs longer opens it again; 0 waits for every probe."),
)  # fmt: skip
_RETRY = (
    Parameter("retry.attempts", "whole", "In all, the first try included.", 3, "tries", 1, 100),
    Parameter("retry.backoff", "choice", "How waits grow.", "exponential", choices=BACKOFFS),
    _seconds("retry.base_seconds", 0.1, "The longest first wait; each is drawn below its cap."),
    _seconds("retry.cap_seconds", 5, "The longest wait."),
    _seconds("retry.retry_after_max_seconds", 30, "Beyond it a Retry-After is a failure."),
    Parameter("retry.budget_rate", "number", "Retries for each call over 10 s.", 0.2, "", 0, 10),
    Parameter("retry.budget_per_second", "number", "And so many beside.", 10, "/s", 0, 1_000_000),
    Parameter("retry.retry_on", "words", "Statuses and names of errors.", RETRIED, most=100),
    Parameter("retry.never", "words", "What no retry helps.", NEVER_RETRIED, most=100),
    _text("retry.then", 200, "Where it goes when all tries have failed."),
)
_BULKHEAD = (
    Parameter(
        "bulkhead.tier", "choice", "Stands for limit, queue and wait where those are not given.",
        None, choices=tuple(TIERS),
    ),
    Parameter("bulkhead.limit", "whole", "Calls at once.", None, "calls", 1, 1_000_000),
    Parameter("bulkhead.queue", "whole", "Calls that wait.", 0, "calls", 0, 1_000_000),
    _seconds("bulkhead.queue_seconds", None, "The longest wait for a permit; 5 s by default."),
    Parameter(
        "bulkhead.per_key_limit", "whole", "Calls at once for one key, such as a user.", None,
        "calls", 1, 1_000_000,
    ),
    Parameter(
        "bulkhead.mode", "choice",
        "fixed, the default, or adaptive: the limit follows how long calls take, and how many time"
        " out or get 429, 503 or 529.",
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
    Parameter("fallback.mode", "choice", "What is given instead.", "error", choices=FALLBACK_MODES),
    _text("fallback.failure_mode", 300, "When it is given."),
    _text("fallback.action", 1000, "What it does, in words."),
    _text("fallback.code", 80, "The error's code, as users' software sees it."),
    Parameter("fallback.status", "whole", "The error's HTTP status.", None, "", 400, 599),
    _text("fallback.message", 1000, "What users are told, in their language."),
    _text("fallback.message_en", 1000, "The same in English, for operators."),
    Parameter("fallback.chain", "chain", "What is tried, in order.", (), most=20),
    _text("fallback.user_impact", 1000, "What users lose, and what goes on."),
)
_BUDGET = (
    Parameter(
        "budget.tokens", "whole", "Tokens that all calls of one process may use in the window.",
        None, "tokens", 1, MAX_TOKENS,
    ),
    _seconds("budget.window_seconds", 60, "Length of the window.", least=1, most=31 * A_DAY),
    Parameter(
        "budget.per_key_tokens", "whole", "Tokens that one key, such as a user, may use in it.",
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
