"""The keyword arguments of policies, breakers, bulkheads and guards."""

from collections.abc import Callable, Mapping
from typing import Any, TypedDict, cast

from switchgear.guards import KeyOf, Keys, OnEngage, Unknown
from switchgear.patterns.caches import Cache
from switchgear.patterns.fallback import Fallback
from switchgear.patterns.parameters import (
    BreakerParameters,
    BulkheadParameters,
    HttpTimeouts,
    RetryParameters,
    SpendParameters,
    Tier,
)

Errors = tuple[type[BaseException], ...]


class BreakerArguments(TypedDict, total=False):
    """The arguments of a breaker. `parameters` apply while the console has none.

    `ignore` are exceptions that do not count. `is_failure` classifies every other exception
    (default: all but HTTP client errors are failures), `is_failed_result` returned values.
    """

    parameters: BreakerParameters | None
    ignore: Errors
    is_failure: Callable[[BaseException], bool] | None
    is_failed_result: Callable[[Any], bool] | None


class Arguments(TypedDict, total=False):
    """The arguments of a policy. All are optional, and the console's settings take precedence.

    - `timeout_seconds` limits one attempt, `deadline_seconds` the whole call with all attempts;
      `http` are the timeouts of the parts of an HTTP call, for transports.
    - `breaker`, `retry`, `bulkhead`: parameters. Without any, and none of the console, there is a
      breaker with the defaults, and neither retries nor a bulkhead.
    - `fallback`: a :class:`Fallback`, or a function that is called with the call's arguments;
      `cache`: a cache of good answers, used if the fallback fails. `providers`: the functions for
      the targets of the console's chain, by name; the fallback comes after them. `on_switch`: True
      if the fallback also answers for calls that a switch stops.
    - `budget`: token limits, for calls that reserve tokens in `policy.budget`.
    - `key` and `priority` in the bulkhead: values, or functions of the call's arguments.
    - `ignore`, `is_failure`, `is_failed_result`: for the breaker, which all policies of a name
      share. `retry_on`, `never`, `retry_result`, `truncate`: for retries.
    - `hedge_after_seconds`: start a second attempt if a coroutine function takes longer (see
      :class:`Hedge`); requires `is_idempotent=True`, a promise that the call may be made twice.
    """

    timeout_seconds: float | None
    deadline_seconds: float | None
    http: HttpTimeouts | None
    breaker: BreakerParameters | None
    retry: RetryParameters | None
    bulkhead: BulkheadParameters | Tier | None
    fallback: Fallback | Callable[..., Any] | None
    providers: Mapping[str, Callable[..., Any]] | None
    cache: Cache | None
    budget: SpendParameters | None
    on_switch: bool
    key: object
    priority: int | Callable[..., int | None] | None
    ignore: Errors
    is_failure: Callable[[BaseException], bool] | None
    is_failed_result: Callable[[Any], bool] | None
    retry_on: Errors | Callable[[BaseException], bool] | None
    never: Errors | Callable[[BaseException], bool] | None
    retry_result: Callable[[Any], bool] | None
    truncate: Callable[[tuple[Any, ...], dict[str, Any]], tuple[tuple[Any, ...], dict[str, Any]]]
    hedge_after_seconds: float | None
    is_idempotent: bool


class GuardArguments(TypedDict, total=False):
    """The arguments of :meth:`Switchgear.guard`."""

    segment: Keys
    feature: Keys
    experiments: Keys
    targeting_key: KeyOf
    unknown: Unknown
    on_engage: OnEngage


class PolicyArguments(Arguments, GuardArguments, total=False):
    """The arguments of a policy and of the guard around it."""


def split_guard_arguments(arguments: PolicyArguments) -> tuple[GuardArguments, Arguments]:
    """Split the arguments of a policy into those of its guard and the rest."""
    of_guard = GuardArguments.__annotations__
    guarded = {name: value for name, value in arguments.items() if name in of_guard}
    rest = {name: value for name, value in arguments.items() if name not in of_guard}
    return cast(GuardArguments, guarded), cast(Arguments, rest)
