"""The immutable parameters of each pattern, with the same defaults as the console."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from switchgear.patterns.adaptive_limit import LimitRange

WindowType = Literal["count", "time"]
Backoff = Literal["exponential", "linear"]
Tier = Literal["critical", "standard", "optional"]
BulkheadMode = Literal["fixed", "adaptive"]

WINDOW_SIZES: Mapping[WindowType, int] = {"count": 100, "time": 60}
"""Default size of a window, in calls or in seconds."""
MAX_CALLS, MAX_SECONDS = 1_000_000, 86_400.0
MAX_TOKENS, MAX_WINDOW_SECONDS = 10**12, 31 * 86_400.0
DEFAULT_QUEUE_SECONDS = 5.0
"""Default of the longest wait in a bulkhead's queue."""

DEFAULT_RETRY_ON: tuple[str | int, ...] = (
    408, 429, 500, 502, 503, 504, "connection_error", "timeout",
    "rate_limit_exceeded", "model_overloaded", "context_length_exceeded",
)  # fmt: skip
DEFAULT_NEVER: tuple[str | int, ...] = (
    400, 401, 403, 404, "invalid_api_key", "content_policy_violation", "invalid_request_error",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class BreakerParameters:
    """The conditions under which a breaker opens, the time it stays open, and its probes.

    `window_size` is in calls or in seconds, None for the default of its type. `failure_count`, if
    set, decides alone and needs no `minimum_calls`. All other conditions, including
    `consecutive_failures`, apply only once the window holds `minimum_calls` calls: with
    `consecutive_failures=5` also set `minimum_calls=5`, or use `failure_count`.

    `half_open_max_seconds` limits each probe in flight: a longer probe reopens the breaker, without
    increasing `open_seconds`. With 0 there is no limit: a probe that never ends keeps the breaker
    half-open until it is reset. Raise :class:`ValueError` or :class:`TypeError`, naming the
    parameter.
    """

    window_type: WindowType = "count"
    window_size: int | None = None
    minimum_calls: int = 20
    failure_rate: float = 0.5
    failure_count: int | None = None
    consecutive_failures: int | None = None
    slow_call_seconds: float | None = None
    slow_call_rate: float = 1.0
    open_seconds: float = 30.0
    open_multiplier: float = 1.5
    open_max_seconds: float = 300.0
    open_jitter: float = 0.2
    half_open_calls: int = 5
    half_open_concurrent: int = 1
    half_open_max_seconds: float = 0.0

    def __post_init__(self) -> None:
        _check_choice("window_type", self.window_type, WINDOW_SIZES)
        _check_integer("window_size", self.window_size, 1, 86_400, optional=True)
        _check_integer("minimum_calls", self.minimum_calls, 1, MAX_CALLS)
        _check_number("failure_rate", self.failure_rate, 0.0001, 1)
        _check_integer("failure_count", self.failure_count, 1, MAX_CALLS, optional=True)
        _check_integer(
            "consecutive_failures", self.consecutive_failures, 1, MAX_CALLS, optional=True
        )
        _check_number(
            "slow_call_seconds", self.slow_call_seconds, 0.001, MAX_SECONDS, optional=True
        )
        _check_number("slow_call_rate", self.slow_call_rate, 0.0001, 1)
        _check_number("open_seconds", self.open_seconds, 0.001, MAX_SECONDS)
        _check_number("open_multiplier", self.open_multiplier, 1, 100)
        _check_number("open_max_seconds", self.open_max_seconds, 0.001, MAX_SECONDS)
        _check_number("open_jitter", self.open_jitter, 0, 1)
        _check_integer("half_open_calls", self.half_open_calls, 1, 10_000)
        _check_integer("half_open_concurrent", self.half_open_concurrent, 1, 10_000)
        _check_number("half_open_max_seconds", self.half_open_max_seconds, 0, MAX_SECONDS)

    @property
    def size(self) -> int:
        """The size of the window, in calls or seconds."""
        return self.window_size or WINDOW_SIZES[self.window_type]

    @property
    def needed_calls(self) -> int:
        """`minimum_calls`, but at most the size of a count-based window."""
        if self.window_type == "count":
            return min(self.minimum_calls, self.size)
        return self.minimum_calls


@dataclass(frozen=True, kw_only=True)
class RetryParameters:
    """The number of attempts, the pauses between them, and the budget.

    Pauses have full jitter: U(0, min(cap, base·2ⁿ)), or base·(n+1) with a `linear` backoff, n
    counting retries from 0. `retry_on` and `never` are HTTP statuses and names of errors; `never`
    takes precedence. A `Retry-After` is honored up to `retry_after_max_seconds`; beyond that the
    call fails at once. Over 10 seconds, `budget_rate` retries per call and `budget_per_second`
    retries per second are allowed. Raise :class:`ValueError` or :class:`TypeError`, naming the
    parameter.
    """

    attempts: int = 3
    backoff: Backoff = "exponential"
    base_seconds: float = 0.1
    cap_seconds: float = 5.0
    retry_after_max_seconds: float = 30.0
    budget_rate: float = 0.2
    budget_per_second: float = 10.0
    retry_on: tuple[str | int, ...] = DEFAULT_RETRY_ON
    never: tuple[str | int, ...] = DEFAULT_NEVER

    def __post_init__(self) -> None:
        _check_integer("attempts", self.attempts, 1, 100)
        _check_choice("backoff", self.backoff, ("exponential", "linear"))
        _check_number("base_seconds", self.base_seconds, 0, MAX_SECONDS)
        _check_number("cap_seconds", self.cap_seconds, 0, MAX_SECONDS)
        _check_number("retry_after_max_seconds", self.retry_after_max_seconds, 0, MAX_SECONDS)
        _check_number("budget_rate", self.budget_rate, 0, 10)
        _check_number("budget_per_second", self.budget_per_second, 0, 1_000_000)
        for name in ("retry_on", "never"):
            given = getattr(self, name)
            if not isinstance(given, tuple) or not all(isinstance(e, str | int) for e in given):
                raise TypeError(f"{name} must be a tuple of statuses and names, not {given!r:.50}")


@dataclass(frozen=True, kw_only=True)
class BulkheadParameters:
    """The limits of a bulkhead: concurrent calls, calls per key, queued calls, and waits.

    Without `queue_seconds` a queued call waits at most 5 s; with 0, calls don't wait. In
    `mode="adaptive"` the limit starts at `limit` and follows the durations and errors of calls,
    between `min_limit` (default: a quarter of `limit`) and `max_limit` (default: four times
    `limit`). Raise :class:`ValueError` or :class:`TypeError`, naming the parameter.
    """

    limit: int
    queue: int = 0
    queue_seconds: float | None = None
    per_key_limit: int | None = None
    mode: BulkheadMode = "fixed"
    min_limit: int | None = None
    max_limit: int | None = None

    def __post_init__(self) -> None:
        _check_integer("limit", self.limit, 1, MAX_CALLS)
        _check_integer("queue", self.queue, 0, MAX_CALLS)
        _check_number("queue_seconds", self.queue_seconds, 0, MAX_SECONDS, optional=True)
        _check_integer("per_key_limit", self.per_key_limit, 1, MAX_CALLS, optional=True)
        _check_choice("mode", self.mode, ("fixed", "adaptive"))
        _check_integer("min_limit", self.min_limit, 1, MAX_CALLS, optional=True)
        _check_integer("max_limit", self.max_limit, 1, MAX_CALLS, optional=True)
        if not (self.min_limit or 1) <= self.limit <= (self.max_limit or MAX_CALLS):
            raise ValueError(
                f"limit must be from min_limit to max_limit, {self.min_limit} to {self.max_limit},"
                f" not {self.limit}"
            )

    @property
    def wait_seconds(self) -> float:
        return DEFAULT_QUEUE_SECONDS if self.queue_seconds is None else self.queue_seconds

    @property
    def limit_range(self) -> LimitRange:
        return LimitRange(
            initial=self.limit,
            min_limit=self.min_limit or max(1, self.limit // 4),
            max_limit=self.max_limit or min(4 * self.limit, MAX_CALLS),
        )


@dataclass(frozen=True, kw_only=True)
class HttpTimeouts:
    """Timeouts of an HTTP call in seconds; `pool` is the wait for a pooled connection."""

    connect: float = 5.0
    read: float = 30.0
    write: float = 5.0
    pool: float = 10.0

    def __post_init__(self) -> None:
        for name in ("connect", "read", "write", "pool"):
            _check_number(name, getattr(self, name), 0.001, MAX_SECONDS)


@dataclass(frozen=True, kw_only=True)
class SpendParameters:
    """The limits of a token budget.

    `tokens` is the limit for all calls together in any `window_seconds`, `per_key_tokens` the limit
    for the calls of one key, such as a user; None for no limit. Raise :class:`ValueError` or
    :class:`TypeError`, naming the parameter.
    """

    tokens: int | None = None
    window_seconds: float = 60.0
    per_key_tokens: int | None = None

    def __post_init__(self) -> None:
        _check_integer("tokens", self.tokens, 1, MAX_TOKENS, optional=True)
        _check_number("window_seconds", self.window_seconds, 1, MAX_WINDOW_SECONDS)
        _check_integer("per_key_tokens", self.per_key_tokens, 1, MAX_TOKENS, optional=True)


def _check_integer(
    name: str, value: object, minimum: int, maximum: int, *, optional: bool = False
) -> None:
    if value is None and optional:
        return
    wrong = f"{name} must be a whole number from {minimum} to {maximum}, not {value!r:.50}"
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(wrong)
    if not minimum <= value <= maximum:
        raise ValueError(wrong)


def _check_number(
    name: str, value: object, minimum: float, maximum: float, *, optional: bool = False
) -> None:
    if value is None and optional:
        return
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number, not {value!r:.50}")
    if not math.isfinite(value):
        raise ValueError(f"{name} must be a number, not {value!r:.50}")
    if not minimum <= value <= maximum:
        raise ValueError(f"{name} must be from {minimum:g} to {maximum:g}, not {value!r:.50}")


def _check_choice(name: str, value: object, allowed: object) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, not {value!r:.50}")
    if value not in allowed:  # type: ignore[operator]
        raise ValueError(f"{name} can't be {value!r:.50}")


TIERS: Mapping[Tier, BulkheadParameters] = {
    "critical": BulkheadParameters(limit=5, queue=10, queue_seconds=300),
    "standard": BulkheadParameters(limit=3, queue=5, queue_seconds=120),
    "optional": BulkheadParameters(limit=2, queue=3, queue_seconds=60),
}
"""Bulkheads by importance. Critical: synthesis and quality gates; standard: content analysis;
optional: enrichment and caching."""


def resolve_bulkhead_parameters(
    given: BulkheadParameters | Tier | None,
) -> BulkheadParameters | None:
    """Return the parameters of a tier, or the given parameters.

    Raise :class:`ValueError` for an unknown tier and :class:`TypeError` for any other type.
    """
    if given is None or isinstance(given, BulkheadParameters):
        return given
    if not isinstance(given, str):
        raise TypeError(
            "parameters must be BulkheadParameters(limit=...), a tier or None, not"
            f" {type(given).__name__:.100}"
        )
    if given not in TIERS:
        raise ValueError(f"a tier is one of {', '.join(TIERS)}, not {given!r:.50}")
    return TIERS[given]
