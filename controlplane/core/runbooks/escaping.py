"""Escaping of foreign text in Markdown."""

import re

MAX_LENGTH = 500
_ANYWHERE = re.compile(r"([\\`*_\[\]<>&|~])")
_AT_START = re.compile(r"^([-+#=]|\d+(?=[.)]))")


def plain(text: object, longest: int = MAX_LENGTH) -> str:
    """Return the text on one line without any markup, cut to `longest` characters."""
    said = "".join(one if one.isprintable() else " " for one in str(text))
    said = " ".join(said.split())
    if len(said) > longest:
        said = f"{said[: longest - 1]}…"
    return _AT_START.sub(_escaped, _ANYWHERE.sub(r"\\\1", said))


def _escaped(begin: re.Match[str]) -> str:
    """Escape the sign of a list or heading; after a number, what follows it."""
    sign = begin[1]
    return f"{sign}\\" if sign.isdigit() else f"\\{sign}"
