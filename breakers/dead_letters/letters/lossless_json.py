"""JSON parsed and written without loss: digits of numbers, order and repeated names stay. Pure."""

import json
from collections.abc import Iterator
from typing import Any

MAX_DEPTH = 60


def format_json(value: bytes | str) -> str | None:
    """Return JSON objects and lists indented, with numbers as written.

    Return None if the value is no JSON, or nested too deeply.
    """
    if value[:64].lstrip()[:1] not in (b"{", b"[", "{", "["):
        return None
    try:
        return "".join(_render(parse_json(value), 0))
    except (ValueError, RecursionError):
        return None


def parse_json(value: bytes | str) -> Any:
    """Parse JSON losslessly: numbers keep their digits, objects their order and repeated names.

    Raises `ValueError` and `RecursionError`.
    """
    return json.loads(
        value,
        parse_int=RawNumber,
        parse_float=RawNumber,
        parse_constant=_refuse_constant,
        object_pairs_hook=ObjectMembers,
    )


def compact_json(value: str) -> str:
    """Return the JSON without white space. Raises `ValueError` and `RecursionError`."""
    return to_json(parse_json(value))


def to_json(tree: Any) -> str:
    """Return the JSON, in one line, of a result of :func:`parse_json`."""
    return "".join(_render(tree, None))


def is_object(tree: Any) -> bool:
    return isinstance(tree, ObjectMembers)


class RawNumber(str):
    """A JSON number as written, so that no digit is lost."""


class ObjectMembers(list[Any]):
    """The members of a JSON object in order, including repeated names."""


def _refuse_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON.")


def _render(value: Any, depth: int | None) -> Iterator[str]:
    """Yield the JSON of a parsed value in pieces, indented from `depth` on; in one line if None."""
    if depth is not None and depth > MAX_DEPTH:
        raise RecursionError
    if isinstance(value, RawNumber):
        yield str(value)
    elif isinstance(value, ObjectMembers):
        colon = ":" if depth is None else ": "
        items = [(f"{_quote_json(name)}{colon}", member) for name, member in value]
        yield from _render_nested("{}", items, depth)
    elif isinstance(value, list):
        yield from _render_nested("[]", [("", member) for member in value], depth)
    else:
        yield _quote_json(value)


def _render_nested(marks: str, items: list[tuple[str, Any]], depth: int | None) -> Iterator[str]:
    if not items:
        yield marks
        return
    inside = None if depth is None else depth + 1
    pad = "" if depth is None else "\n" + "  " * (depth + 1)
    yield marks[0]
    for at, (before, member) in enumerate(items):
        yield f"{',' if at else ''}{pad}{before}"
        yield from _render(member, inside)
    yield f"{'' if depth is None else chr(10) + '  ' * depth}{marks[1]}"


def _quote_json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # Half of a pair of surrogates.
        return json.dumps(value)
    return text
