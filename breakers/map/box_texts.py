"""Texts inside the boxes of the map, cut to the width of a box.

Pure. A page can't measure its texts on the server, so widths are estimated by kinds of characters.
"""

import re
import unicodedata
from dataclasses import dataclass

NAME_WIDTH = 130
"""Room for a name beside the icon, in pixels."""
NARROW, WIDE = frozenset("iljtfrI.,:;'|()[]/-1 "), frozenset("mwMW@%")


@dataclass(frozen=True)
class BoxText:
    """A line of text and the vertical position of its baseline in the box."""

    text: str
    y: int


def wrap_name(name: str) -> tuple[str, str]:
    """Return the name in one or two lines, broken at a space or hyphen.

    A line that is too long ends with an ellipsis.
    """
    if estimate_width(name) <= NAME_WIDTH:
        return name, ""
    parts = re.findall(r"[^ -]*[ -]?", name)
    count = len(parts)
    while count and estimate_width("".join(parts[:count]).rstrip()) > NAME_WIDTH:
        count -= 1
    head = "".join(parts[:count]).rstrip()
    return (head, _truncate("".join(parts[count:]))) if head else (_truncate(name), "")


def estimate_width(text: str) -> float:
    """Return the width of a name in pixels, in bold at 13.5 px of a wide font (DejaVu Sans)."""
    return sum(map(_character_width, text))


def _character_width(character: str) -> float:
    if character in NARROW:
        return 5.4
    if character in WIDE:
        return 14.5
    if unicodedata.east_asian_width(character) in "WF":
        return 14
    return 10.4 if character.isupper() else 9.1


def _truncate(text: str) -> str:
    if estimate_width(text) <= NAME_WIDTH:
        return text
    while text and estimate_width(f"{text}…") > NAME_WIDTH:
        text = text[:-1]
    return f"{text.rstrip()}…"
