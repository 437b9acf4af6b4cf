"""Words of other people in Markdown of ours: they stand there as they are, and mean nothing."""

import re

MAX_LENGTH = 500
_ANYWHERE = re.compile(r"([\\`*_\[\]<>&|~])")
_AT_START = re.compile(r"^([-+#=]|\d+(?=[.)]))")


def plain(text: object, longest: int = MAX_LENGTH) -> str:
    """On one line, also within a table; what is longer is cut, and says so."""
    said = "".join(one if one.isprintable() else " " for one in str(text))
    said = " ".join(said.split())
    if len(said) > longest:
        said = f"{said[: longest - 1]}…"
    return _AT_START.sub(_escaped, _ANYWHERE.sub(r"\\\1", said))


def _escaped(begin: re.Match[str]) -> str:
    """A list's or a heading's sign; of a number, what follows it."""
    sign = begin[1]
    return f"{sign}\\" if sign.isdigit() else f"\\{sign}"
