"""HTML from templates whose values are escaped. Pure."""

from collections.abc import Iterable
from html import escape


class Markup(str):
    """Text that is HTML already, and is inserted as it is."""

    __slots__ = ()


EMPTY = Markup()


def fill(template: str, /, **values: object) -> Markup:
    """Return `template` with each `{name}` replaced by the escaped value of that name.

    Values that are :class:`Markup` are not escaped. The template is a constant of the program.
    """
    return Markup(template.format_map({name: _escape(value) for name, value in values.items()}))


def join(parts: Iterable[Markup], separator: str = "\n") -> Markup:
    """Return the non-empty parts in one text."""
    return Markup(separator.join(part for part in parts if part))


def _escape(value: object) -> str:
    return value if isinstance(value, Markup) else escape(str(value))
