"""The keyword arguments of policies, breakers, bulkheads and guards, and their validation.

They are validated before any registration: a wrong argument that reached the dependency would apply
to all policies of that name.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypedDict, cast

from switchgear.decorators import is_coroutine_function
from switchgear.guards import KeyOf, Keys, OnEngage, Unknown
from switchgear.patterns.argument_checks import are_exceptions, is_exception_class
from switchgear.patterns.caches import Cache
from switchgear.patterns.fallback import Fallback
from switchgear.patterns.parameters import (
    BreakerParameters,
    BulkheadParameters,
    HttpTimeouts,
    RetryParameters,
    SpendParameters,
    Tier,
    resolve_bulkhead_parameters,
)
from switchgear.patterns.time_limits import validate_seconds

Errors = tuple[type[BaseException], ...]


class BreakerArguments(TypedDict, total=False):
    """The arguments of a breaker. The console's settings replace `parameters`.

    `ignore` are exceptions that do not count. `is_failure` returns True for any other exception
    that is a failure (default: all but HTTP client errors); `is_failed_result` returns True for a
    returned value that is one.
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
    """The arguments of a policy together with those of the guard around it."""


def split_guard_arguments(arguments: PolicyArguments) -> tuple[GuardArguments, Arguments]:
    """Return the arguments of a policy's guard, and its other arguments."""
    of_guard = GuardArguments.__annotations__
    guarded = {name: value for name, value in arguments.items() if name in of_guard}
    rest = {name: value for name, value in arguments.items() if name not in of_guard}
    return cast(GuardArguments, guarded), cast(Arguments, rest)


@dataclass(frozen=True)
class ArgumentRule:
    """A rule that validates one argument.

    `expected` completes the error message "… must be …". `check_value` raises :class:`ValueError`
    for an invalid value of a valid type.
    """

    accepts: Callable[[Any], bool]
    expected: str
    check_value: Callable[[Any], object] | None = None


def _is_a(*kinds: type) -> Callable[[object], bool]:
    return lambda value: isinstance(value, kinds)


def _is_function(value: object) -> bool:
    """Return True for a callable that is neither a coroutine function nor an exception class."""
    return callable(value) and not is_coroutine_function(value) and not is_exception_class(value)


def _is_predicate(value: object) -> bool:
    """Return True for a callable that may be a predicate: no class and no coroutine function."""
    return _is_function(value) and not isinstance(value, type)


def _is_providers(value: object) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(name, str) and callable(provider) for name, provider in value.items()
    )


def _is_cache(value: object) -> bool:
    methods = (getattr(value, name, None) for name in ("get", "put"))
    return not isinstance(value, type) and all(map(callable, methods))


_SECONDS = ArgumentRule(
    lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "a number of seconds",
    validate_seconds,
)
_BREAKER = ArgumentRule(_is_a(BreakerParameters), "BreakerParameters(...)")
_BULKHEAD = ArgumentRule(
    _is_a(BulkheadParameters, str),
    "BulkheadParameters(...) or the name of a tier",
    resolve_bulkhead_parameters,
)
_FUNCTION = ArgumentRule(_is_function, "a plain function")
_PREDICATE = ArgumentRule(_is_predicate, "a plain function, not a class")
_ERRORS_OR_PREDICATE = ArgumentRule(
    lambda value: are_exceptions(value) or _is_predicate(value),
    "a tuple of exception classes or a plain function",
)

RULES: Mapping[str, ArgumentRule] = {
    "timeout_seconds": _SECONDS,
    "deadline_seconds": _SECONDS,
    "http": ArgumentRule(_is_a(HttpTimeouts), "HttpTimeouts(...)"),
    "breaker": _BREAKER,
    "parameters": _BREAKER,
    "retry": ArgumentRule(_is_a(RetryParameters), "RetryParameters(...)"),
    "bulkhead": _BULKHEAD,
    "fallback": ArgumentRule(
        lambda value: (
            isinstance(value, Fallback) or callable(value) or callable(getattr(value, "call", None))
        ),
        "Fallback(...) or a function",
    ),
    "providers": ArgumentRule(_is_providers, "a mapping of names to functions"),
    "cache": ArgumentRule(_is_cache, "an object with get and put, such as MemoryCache(60)"),
    "on_switch": ArgumentRule(_is_a(bool), "True or False"),
    "key": ArgumentRule(
        lambda value: not is_coroutine_function(value), "a value or a plain function"
    ),
    "priority": ArgumentRule(
        lambda value: _is_function(value) or hasattr(type(value), "__index__"),
        "a whole number or a plain function",
    ),
    "ignore": ArgumentRule(are_exceptions, "a tuple of exception classes"),
    "is_failure": _PREDICATE,
    "is_failed_result": _PREDICATE,
    "retry_on": _ERRORS_OR_PREDICATE,
    "never": _ERRORS_OR_PREDICATE,
    "retry_result": _FUNCTION,
    "truncate": _FUNCTION,
    "hedge_after_seconds": _SECONDS,
    "is_idempotent": ArgumentRule(_is_a(bool), "True or False"),
    "budget": ArgumentRule(_is_a(SpendParameters), "SpendParameters(...)"),
}
"""Rules by argument; `parameters` is the breaker's. None as a value means that the argument is not
given."""


def check_policy(name: object, arguments: Mapping[str, Any]) -> str:
    """Check a policy's name and arguments, and return the name as a str.

    Raise :class:`TypeError` for an unknown argument or a wrong type, and :class:`ValueError` for an
    invalid value; both name the argument.
    """
    _check_all(arguments, Arguments.__annotations__, "a policy")
    has_own = arguments.get("on_switch") or arguments.get("cache") is not None
    if has_own and isinstance(arguments.get("fallback"), Fallback):
        what = "on_switch" if arguments.get("on_switch") else "its cache"
        raise ValueError(f"pass {what} to the Fallback instead")
    seconds = "hedge_after_seconds"
    if arguments.get(seconds) is not None and not arguments.get("is_idempotent"):
        raise ValueError(f"{seconds} needs is_idempotent=True: a hedged call can run twice")
    return _check_name(name)


def check_breaker(name: object, arguments: Mapping[str, Any]) -> str:
    """Check the name and arguments of a breaker like :func:`check_policy`; return the name."""
    _check_all(arguments, BreakerArguments.__annotations__, "a breaker")
    return _check_name(name)


def check_bulkhead(name: object, parameters: object) -> str:
    """Check the name and parameters of a bulkhead like :func:`check_policy`; return the name."""
    _check("parameters", parameters, _BULKHEAD)
    return _check_name(name)


def _check_name(name: object) -> str:
    if not isinstance(name, str):
        kind = type(name).__name__
        raise TypeError(f"name must be text such as 'core->oracle', not {kind:.100}")
    return str.__str__(name)  # `str()` of an enum member would be the name of another dependency.


def _check_all(arguments: Mapping[str, Any], known: Mapping[str, Any], what: str) -> None:
    if wrong := arguments.keys() - known.keys():
        raise TypeError(f"{what} has no argument {', '.join(sorted(wrong))}")
    for name, value in arguments.items():
        if (rule := RULES.get(name)) is not None:
            _check(name, value, rule)


def _check(name: str, value: object, rule: ArgumentRule) -> None:
    if value is None:
        return
    if not rule.accepts(value):
        kind = value.__name__ if isinstance(value, type) else type(value).__name__
        raise TypeError(f"{name} must be {rule.expected}, not {kind:.100}")
    if rule.check_value is not None:
        try:
            rule.check_value(value)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
