"""Registries of the palette: commands, and sources that search objects."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from django.urls import reverse

from controlplane.core.actors import Person
from controlplane.core.registry import FunctionRegistry, KindRegistry
from controlplane.core.search_words import split_words

PAGE, ACTION = "Page", "Action"


@dataclass(frozen=True)
class PaletteCommand:
    """A page or an action that the palette always lists.

    `url_name` is the name of a URL without arguments; `address` is the path of a page that Django
    doesn't serve. An action without a URL has in `runs` the name by which the page's script runs
    it. `keys` are the shortcut's keys, pressed in turn (`g s`), and `words` additional search
    terms. `scope` is the permission needed to see the command: "", `operate`, `admin` or an API
    scope.
    """

    title: str
    icon: str
    url_name: str = ""
    keys: str = ""
    words: str = ""
    scope: str = ""
    kind: str = PAGE
    in_dialog: bool = False
    runs: str = ""
    detail: str = ""
    position: int = 0
    address: str = ""

    @property
    def key_sequence(self) -> tuple[str, ...]:
        return tuple(self.keys.split())

    @property
    def path(self) -> str:
        return reverse(self.url_name) if self.url_name else self.address


@dataclass(frozen=True)
class PaletteEntry:
    """A line of the palette's results, and the page or action that it opens.

    Entries are sorted by `weight`, highest first. If `is_lasting`, the page's script may list the
    entry among the recently used ones.
    """

    kind: str
    title: str
    icon: str
    path: str = ""
    detail: str = ""
    keys: tuple[str, ...] = field(default=())
    in_dialog: bool = False
    runs: str = ""
    weight: float = 0.0
    is_lasting: bool = False


@dataclass(frozen=True)
class PaletteQuery:
    """The text typed into the palette, stripped, and the user."""

    text: str
    user: Person
    now: datetime

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(split_words(self.text))


PaletteSource = Callable[[PaletteQuery], Sequence[PaletteEntry]]
"""Function that returns at most `MAX_ENTRIES` matching entries of one kind, best first.

The query's text is never empty.
"""

MAX_ENTRIES = 6

PALETTE_COMMANDS = KindRegistry[PaletteCommand](
    "palette_entries",
    name=lambda command: command.title,
    order=lambda command: command.position,
)
"""All commands, in the order they are listed before anything is typed."""
PALETTE_SOURCES = FunctionRegistry[PaletteSource]("palette_entries")


def register_commands(position: int, *commands: PaletteCommand) -> None:
    """Register palette commands, to be listed at `position` among those of other apps."""
    PALETTE_COMMANDS.register(*(replace(command, position=position) for command in commands))
