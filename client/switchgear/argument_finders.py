"""Functions that find keys, such as the user or the model, in the arguments of a call."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

KeyFinder = Callable[[tuple[Any, ...], Mapping[str, Any]], Any]

_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_EMPTY = inspect.Parameter.empty
_KEYWORD_ONLY = 2**31


def make_finder(find: Callable[..., Any], function: Callable[..., Any]) -> KeyFinder:
    """Return a function that finds keys by `find` in the arguments `(args, kwargs)` of a call.

    It is for calls of `function`. If all parameters of `find` are parameters of `function`, `find`
    receives those arguments by name, however the call passes them. Otherwise `find` receives all
    arguments of the call.
    """
    own_parameters, call_parameters = find_parameters(find), find_parameters(function)
    if (
        own_parameters is None
        or call_parameters is None
        or any(each.kind not in _NAMED for each in own_parameters.values())
    ):
        return lambda args, kwargs: find(*args, **kwargs)
    places: list[tuple[str, int, bool, Any]] = []
    for name, each in own_parameters.items():
        parameter = call_parameters.get(name)
        if parameter is not None and parameter.kind not in _VARIADIC:
            is_keyword = parameter.kind is parameter.KEYWORD_ONLY
            place = _KEYWORD_ONLY if is_keyword else list(call_parameters).index(name)
            is_named = parameter.kind is not parameter.POSITIONAL_ONLY
            places.append((name, place, is_named, parameter.default))
        elif each.default is _EMPTY:
            return lambda args, kwargs: find(*args, **kwargs)

    def call_find(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        values = {}
        for name, place, is_named, default in places:
            named = kwargs.get(name, default) if is_named else default
            value = args[place] if place < len(args) else named
            if value is not _EMPTY:  # Else the call itself raises the error.
                values[name] = value
        return find(**values)

    return call_find


def find_parameters(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter] | None:
    """Return the parameters of a function; None if its signature can't be inspected."""
    inner = function.__func__ if isinstance(function, classmethod | staticmethod) else function
    try:
        return inspect.signature(inner).parameters
    except (TypeError, ValueError):
        return None
