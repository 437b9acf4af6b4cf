"""PostgreSQL array literals: passing one to a query is faster than passing a list. Pure."""

from collections.abc import Iterable

import orjson


def number_array(values: Iterable[float | None]) -> str:
    """Return numbers or nulls as an array literal, without loss."""
    return "{" + orjson.dumps([*values]).decode()[1:-1] + "}"


def text_array(values: Iterable[str]) -> str:
    """Return texts as an array literal; they must not contain U+0000."""
    quoted = [value.replace("\\", "\\\\").replace('"', '\\"') for value in values]
    return '{"' + '","'.join(quoted) + '"}' if quoted else "{}"
