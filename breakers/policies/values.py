"""Functions that read policy values of each kind, and record errors for invalid ones. Pure."""

from collections.abc import Mapping
from typing import Any

from breakers.policies.parameters import Parameter
from controlplane.core.json_values import (
    MAX_WORD_LENGTH,
    Errors,
    add_error,
    is_finite,
    read_choice,
    read_integer,
    read_number,
    read_text,
)

MAX_HOP_LENGTH = 300
MAX_IN_HOP = 10


def read_parameter(parameter: Parameter, value: Any, errors: Errors) -> Any:
    """Return a parameter's value, or its default for None; record problems in `errors`."""
    path, least, most = parameter.path, parameter.least, parameter.most
    if value is None:
        default = parameter.default
        return list(default) if isinstance(default, tuple) else default
    match parameter.kind:
        case "whole":
            return read_integer(path, value, least, most, errors)
        case "number":
            return read_number(path, value, least, most, errors)
        case "choice":
            return read_choice(path, value, parameter.choices, errors)
        case "words":
            return read_words(path, value, int(most or 0), errors)
        case "chain":
            return read_chain(path, value, int(most or 0), errors)
        case _:
            return read_text(path, value, int(most or 0), errors)


def number_text(value: float) -> str:
    """Return a number as text, with all its digits, and without `.0` if it is whole."""
    return str(int(value)) if value.is_integer() else repr(value)


def are_numbers(*found: Any) -> bool:
    return all(isinstance(one, int | float) for one in found)


def read_words(path: str, value: Any, most: int, errors: Errors) -> list[str | int]:
    """Return a list of HTTP statuses (as numbers) and error names; record errors for all else."""
    if not isinstance(value, list) or len(value) > most:
        add_error(errors, path, f"Must be a list of at most {most}.")
        return []
    found: list[str | int] = []
    for place, one in enumerate(value):
        candidate = str(one).strip() if isinstance(one, str | int) else ""
        is_status = candidate.isascii() and candidate.isdigit() and len(candidate) == 3
        is_name = (
            isinstance(one, str)
            and 0 < len(candidate) <= MAX_WORD_LENGTH
            and candidate.isprintable()
        )
        if not (is_status or is_name):
            add_error(errors, f"{path}.{place}", "Must be an HTTP status or the name of an error.")
        elif (word := int(candidate) if is_status else candidate) not in found:
            found.append(word)
    return found


def read_chain(path: str, value: Any, most: int, errors: Errors) -> list[Any]:
    """Return a valid fallback chain; hops are texts or flat objects (`provider`, `model`, …)."""
    if not isinstance(value, list) or len(value) > most:
        add_error(errors, path, f"Must be a list of at most {most}.")
        return []
    for place, hop in enumerate(value):
        if not (_is_hop_text(hop) or _is_hop_object(hop)):
            add_error(
                errors, f"{path}.{place}", "Must be a string, or an object of strings and numbers."
            )
    return list(value)


def _is_hop_text(hop: Any) -> bool:
    return isinstance(hop, str) and 0 < len(hop.strip()) <= MAX_HOP_LENGTH and hop.isprintable()


def _is_hop_object(hop: Any) -> bool:
    if not isinstance(hop, Mapping) or not 0 < len(hop) <= MAX_IN_HOP:
        return False
    return all(
        _is_hop_text(key) and (value is None or isinstance(value, bool) or _is_plain(value))
        for key, value in hop.items()
    )


def _is_plain(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= MAX_HOP_LENGTH and value.isprintable()
    return isinstance(value, int | float) and is_finite(value)
