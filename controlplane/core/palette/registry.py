"""Registries of the palette: commands, and sources that search objects."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Protocol, TypeVar

from django.urls import reverse

from controlplane.core.actors import Person
from controlplane.core.authority import TeamFilter, Teams
from controlplane.core.registry import FunctionRegistry, KindRegistry
from controlplane.core.search_words import split_words
from controlplane.core.team_filter import ALL_TEAMS, split_by_team

from .relevance import EXACT

Item = TypeVar("Item")
Item_co = TypeVar("Item_co", covariant=True)
PAGE, ACTION = "Page", "Action"
OWN_BONUS = 38.0
"""Additional weight of what the user's teams own: a later word counts like another's first word."""


@dataclass(frozen=True)
class PaletteCommand:
    """A page or an action that the palette always lists.

    `url_name` is the name of a URL without arguments; `address` is the path of a page that Django
    doesn't serve. An action without a URL has in `runs` the name by which the page's script runs
    it. `keys` are the shortcut's keys, pressed in turn (`g s`), and `words` additional search
    terms. `scope` is the permission needed to see the command: "", `operate`, `admin` or an API
    scope. With `has_team_filter`, its page can be filtered by `?team=`.
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
    has_team_filter: bool = False

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
    entry among the recently used ones. `resource` is what a team may own of it, if anything.
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
    resource: str = ""


class SupportsSlices(Protocol[Item_co]):
    """A list or a queryset."""

    def __iter__(self) -> Iterator[Item_co]: ...

    def __getitem__(self, index: slice) -> Iterable[Item_co]: ...


@dataclass(frozen=True)
class PaletteQuery:
    """The text typed into the palette, stripped, and the user.

    `scope` limits the search to what a team owns, and `own` is what the user's teams own; that of
    everything if they are in none. `teams` are all teams.
    """

    text: str
    user: Person
    now: datetime
    teams: Teams
    scope: TeamFilter = ALL_TEAMS
    own: TeamFilter = ALL_TEAMS

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(split_words(self.text))

    def take(
        self, items: SupportsSlices[Item], most: int, resource_of: Callable[[Item], str]
    ) -> list[Item]:
        """Return the first `most` items in the scope, but what the user's teams own first."""
        if not self.scope.choices:
            return list(items[:most])
        found, _ = split_by_team(self.scope, items, resource_of)
        if not self.own.is_all:
            found.sort(key=lambda one: not self.own.includes(resource_of(one)))
        return found[:most]

    def weigh(self, weight: float, resource: str) -> float:
        """Return the weight of an entry, higher if the user's teams own the resource.

        It stays below that of an exact match.
        """
        is_own = weight and not self.own.is_all and self.own.includes(resource)
        return max(weight, min(EXACT - 1, weight + OWN_BONUS)) if is_own else weight


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
