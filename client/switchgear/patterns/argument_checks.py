"""Checks of the arguments of patterns, with errors that name the argument, and safe predicates."""

from collections.abc import Callable
from typing import Any, Self, overload

from switchgear.decorators import F
from switchgear.journal import log_error


def check_type(name: str, given: object, kind: type, *, is_optional: bool = False) -> None:
    """Raise :class:`TypeError` unless `given` is of type `kind`, or None if `is_optional`."""
    if not isinstance(given, kind) and not (given is None and is_optional):
        expected = "a string" if kind is str else kind.__name__
        raise TypeError(f"{name} must be {expected}, not {given!r:.50}")


def check_functions(
    *, is_optional: bool = True, may_be_class: bool = False, **arguments: object
) -> None:
    """Raise :class:`TypeError` for an argument that is not a function.

    None is valid if `is_optional`, a class if `may_be_class`.
    """
    for name, given in arguments.items():
        if given is None and is_optional:
            continue
        if not callable(given) or (isinstance(given, type) and not may_be_class):
            raise TypeError(f"{name} must be a function, not {given!r:.50}")


def is_exception_class(given: object) -> bool:
    return isinstance(given, type) and issubclass(given, BaseException)


def are_exceptions(given: object) -> bool:
    return isinstance(given, tuple) and all(map(is_exception_class, given))


def check_exceptions(name: str, given: object) -> None:
    """Raise :class:`TypeError` unless `given` is a tuple of exception classes."""
    if not are_exceptions(given):
        raise TypeError(f"{name} must be a tuple of exception classes, not {given!r:.50}")


def check_error_kinds(**arguments: object) -> None:
    """Raise :class:`TypeError` for an argument by which errors can't be selected.

    Valid are a tuple of exception classes, a predicate and None.
    """
    for argument, given in arguments.items():
        # A class is callable, too, but as a predicate it would be true for every error.
        is_function = callable(given) and not isinstance(given, type)
        if given is not None and not is_function and not are_exceptions(given):
            raise TypeError(
                f"{argument} must be a tuple of exception classes or a function of the error, not"
                f" {given!r:.50}"
            )


def evaluate_predicate(
    predicate: Callable[[Any], bool], outcome: object, question: str, *, if_raised: bool = False
) -> bool:
    """Return the result of `predicate` for the outcome of a call.

    If it raises, log the error and return `if_raised`.
    """
    try:
        return bool(predicate(outcome))
    except Exception:  # The caller must get the outcome of the call, not this error.
        log_error(f"%r raised an error instead of deciding {question}", predicate)
        return if_raised


class BareDecorator:
    """A base class of patterns that can be used as a decorator without parentheses."""

    @overload
    def __new__(cls, name: F, /) -> F: ...  # type: ignore[misc]
    @overload
    def __new__(cls, name: str = ..., *args: Any, **kwargs: Any) -> Self: ...
    def __new__(cls, name: Any = "unnamed", *args: Any, **kwargs: Any) -> Any:
        is_bare = callable(name) or isinstance(name, classmethod | staticmethod)
        if is_bare and not args and not kwargs:
            return cls(getattr(name, "__qualname__", "unnamed"))(name)  # type: ignore[operator]
        return super().__new__(cls)
