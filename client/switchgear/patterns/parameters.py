"""The immutable parameters of each pattern, with the same defaults as the console."""

import math
from collections.abc import Collection, Mapping
from dataclasses import Field, dataclass, field, fields
from functools import partial
from typing import Any, ClassVar, Literal, get_args

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


def _check_integer(minimum: int, maximum: int, name: str, value: object) -> None:
    wrong = f"{name} must be a whole number from {minimum} to {maximum}, not {value!r:.50}"
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(wrong)
    if not minimum <= value <= maximum:
        raise ValueError(wrong)


def _check_number(minimum: float, maximum: float, name: str, value: object) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number, not {value!r:.50}")
    if not math.isfinite(value):
        raise ValueError(f"{name} must be a number, not {value!r:.50}")
    if not minimum <= value <= maximum:
        raise ValueError(f"{name} must be from {minimum:g} to {maximum:g}, not {value!r:.50}")


def _check_choice(allowed: Collection[str], name: str, value: object) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, not {value!r:.50}")
    if value not in allowed:
        raise ValueError(f"{name} can't be {value!r:.50}")


def _integer(default: int | None, minimum: int, maximum: int) -> Any:
    return field(default=default, metadata={"check": partial(_check_integer, minimum, maximum)})


def _number(default: float | None, minimum: float, maximum: float) -> Any:
    return field(default=default, metadata={"check": partial(_check_number, minimum, maximum)})


def _choice(allowed: object) -> Mapping[str, Any]:
    return {"check": partial(_check_choice, get_args(allowed))}


class _CheckedParameters:
    """Base of dataclasses that check their fields; None is valid if it is a field's default."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __post_init__(self) -> None:
        for each in fields(self):
            value, check = getattr(self, each.name), each.metadata.get("check")
            if check is not None and not (value is None and each.default is None):
                check(each.name, value)


@dataclass(frozen=True, kw_only=True)
class BreakerParameters(_CheckedParameters):
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

    window_type: WindowType = field(default="count", metadata=_choice(WindowType))
    window_size: int | None = _integer(None, 1, 86_400)
    minimum_calls: int = _integer(20, 1, MAX_CALLS)
    failure_rate: float = _number(0.5, 0.0001, 1)
    failure_count: int | None = _integer(None, 1, MAX_CALLS)
    consecutive_failures: int | None = _integer(None, 1, MAX_CALLS)
    slow_call_seconds: float | None = _number(None, 0.001, MAX_SECONDS)
    slow_call_rate: float = _number(1.0, 0.0001, 1)
    open_seconds: float = _number(30.0, 0.001, MAX_SECONDS)
    open_multiplier: float = _number(1.5, 1, 100)
    open_max_seconds: float = _number(300.0, 0.001, MAX_SECONDS)
    open_jitter: float = _number(0.2, 0, 1)
    half_open_calls: int = _integer(5, 1, 10_000)
    half_open_concurrent: int = _integer(1, 1, 10_000)
    half_open_max_seconds: float = _number(0.0, 0, MAX_SECONDS)

    @property
    def size(self) -> int:
        """The size of the window of calls, in calls or seconds."""
        return self.window_size or WINDOW_SIZES[self.window_type]

    @property
    def needed_calls(self) -> int:
        """The minimum number of calls for a rate: `minimum_calls`, at most the size in calls."""
        if self.window_type == "count":
            return min(self.minimum_calls, self.size)
        return self.minimum_calls


@dataclass(frozen=True, kw_only=True)
class RetryParameters(_CheckedParameters):
    """The number of attempts of a call, the pauses between them, and the budget of retries.

    Pauses have full jitter: U(0, min(cap, base·2ⁿ)), or base·(n+1) with a `linear` backoff, n
    counting retries from 0. `retry_on` and `never` are HTTP statuses and names of errors; `never`
    takes precedence. A `Retry-After` is honored up to `retry_after_max_seconds`; beyond that the
    call fails at once. Over 10 seconds, `budget_rate` retries per call and `budget_per_second`
    retries per second are allowed. Raise :class:`ValueError` or :class:`TypeError`, naming the
    parameter.
    """

    attempts: int = _integer(3, 1, 100)
    backoff: Backoff = field(default="exponential", metadata=_choice(Backoff))
    base_seconds: float = _number(0.1, 0, MAX_SECONDS)
    cap_seconds: float = _number(5.0, 0, MAX_SECONDS)
    retry_after_max_seconds: float = _number(30.0, 0, MAX_SECONDS)
    budget_rate: float = _number(0.2, 0, 10)
    budget_per_second: float = _number(10.0, 0, 1_000_000)
    retry_on: tuple[str | int, ...] = DEFAULT_RETRY_ON
    never: tuple[str | int, ...] = DEFAULT_NEVER

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("retry_on", "never"):
            given = getattr(self, name)
            if not isinstance(given, tuple) or not all(isinstance(e, str | int) for e in given):
                raise TypeError(f"{name} must be a tuple of statuses and names, not {given!r:.50}")


@dataclass(frozen=True, kw_only=True)
class BulkheadParameters(_CheckedParameters):
    """The limits of a bulkhead: concurrent calls, calls per key, queued calls, and their waits.

    Without `queue_seconds` a queued call waits at most 5 s; with 0, calls don't wait. In
    `mode="adaptive"` the limit starts at `limit` and follows the durations and errors of calls,
    between `min_limit` (default: a quarter of `limit`) and `max_limit` (default: four times
    `limit`). Raise :class:`ValueError` or :class:`TypeError`, naming the parameter.
    """

    limit: int
    queue: int = _integer(0, 0, MAX_CALLS)
    queue_seconds: float | None = _number(None, 0, MAX_SECONDS)
    per_key_limit: int | None = _integer(None, 1, MAX_CALLS)
    mode: BulkheadMode = field(default="fixed", metadata=_choice(BulkheadMode))
    min_limit: int | None = _integer(None, 1, MAX_CALLS)
    max_limit: int | None = _integer(None, 1, MAX_CALLS)

    def __post_init__(self) -> None:
        _check_integer(1, MAX_CALLS, "limit", self.limit)
        super().__post_init__()
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
class HttpTimeouts(_CheckedParameters):
    """Timeouts of an HTTP call in seconds; `pool` is the wait for a pooled connection."""

    connect: float = _number(5.0, 0.001, MAX_SECONDS)
    read: float = _number(30.0, 0.001, MAX_SECONDS)
    write: float = _number(5.0, 0.001, MAX_SECONDS)
    pool: float = _number(10.0, 0.001, MAX_SECONDS)


@dataclass(frozen=True, kw_only=True)
class SpendParameters(_CheckedParameters):
    """The limits of a token budget.

    `tokens` is the limit for all calls together in any `window_seconds`, `per_key_tokens` the limit
    for the calls of one key, such as a user; None for no limit. Raise :class:`ValueError` or
    :class:`TypeError`, naming the parameter.
    """

    tokens: int | None = _integer(None, 1, MAX_TOKENS)
    window_seconds: float = _number(60.0, 1, MAX_WINDOW_SECONDS)
    per_key_tokens: int | None = _integer(None, 1, MAX_TOKENS)


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
    """Return the parameters of a bulkhead, which are given themselves or by the name of a tier.

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
        raise ValueError(f"tier must be one of {', '.join(TIERS)}, not {given!r:.50}")
    return TIERS[given]
