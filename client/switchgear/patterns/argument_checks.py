"""Type checks of arguments, whose errors name the argument."""


def check_type(name: str, given: object, kind: type) -> None:
    """Raise :class:`TypeError` unless `given` is a `kind`."""
    if not isinstance(given, kind):
        expected = "a string" if kind is str else kind.__name__
        raise TypeError(f"{name} must be {expected}, not {given!r:.50}")


def check_functions(*, is_optional: bool = True, **arguments: object) -> None:
    """Raise :class:`TypeError` for an argument that is neither a function nor, if it `is_optional`,
    None. A class is rejected, too: as a predicate it would be always true."""
    for name, given in arguments.items():
        if given is None and is_optional:
            continue
        if not callable(given) or isinstance(given, type):
            raise TypeError(f"{name} must be a function, not {given!r:.50}")


def check_callables(**arguments: object) -> None:
    """Raise :class:`TypeError` for an argument that is neither callable nor None."""
    for name, given in arguments.items():
        if given is not None and not callable(given):
            raise TypeError(f"{name} must be a function, not {given!r:.50}")


def check_exceptions(name: str, given: object) -> None:
    """Raise :class:`TypeError` unless `given` is a tuple of exception classes."""
    is_right = isinstance(given, tuple) and all(
        isinstance(each, type) and issubclass(each, BaseException) for each in given
    )
    if not is_right:
        raise TypeError(f"{name} must be a tuple of exception classes, not {given!r:.50}")
