"""The shape of a wording, and of the notice that is made from it and from facts."""

from dataclasses import dataclass

MAX_LINE_LENGTH = 500
MAX_LINES = 10
MAX_LISTED = 20


@dataclass(frozen=True)
class Notice:
    """A title, what to know about it (label, text), and the console's page about it."""

    icon: str
    title: str
    lines: tuple[tuple[str, str], ...]
    path: str


@dataclass(frozen=True)
class Wording:
    """How one event is told: a title with `{facts}` in it, and (label, fact) lines.

    `buttons` are what a signed-in person may do about it at once, where a transport has buttons.
    """

    icon: str
    title: str
    lines: tuple[tuple[str, str], ...]
    severity: str = "info"
    buttons: tuple[str, ...] = ()
