"""What apps put into the palette: commands as data, and sources that find things."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.urls import reverse
from django.utils.module_loading import autodiscover_modules

from controlplane.core.actors import Person

PAGE, ACTION = "Page", "Action"


@dataclass(frozen=True)
class Command:
    """A page or an action that is always there.

    `url_name` takes no arguments; an action without one is carried out by the script that knows
    `runs`. `keys` are pressed one after the other (`g s`); `words` find it besides its title. The
    scope is what one needs to see it: `""` for everybody, `admin` for admins.
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
    says: str = ""

    @property
    def pressed(self) -> list[str]:
        return self.keys.split()

    @property
    def path(self) -> str:
        return reverse(self.url_name) if self.url_name else ""


@dataclass(frozen=True)
class Entry:
    """One line of the palette, and where it leads.

    `weight` says how well it fits beside others (the higher the better); a thing that `keeps` may
    be offered again later to anybody who saw it.
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
    keeps: bool = False


@dataclass(frozen=True)
class Asked:
    """What somebody typed, without spaces around it, and who."""

    text: str
    user: Person
    now: datetime

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(self.text.casefold().split())


ThingSource = Callable[[Asked], Sequence[Entry]]
"""The things of one kind that fit, the best first, `FEW` at most; never asked with empty text."""

FEW = 6

_commands: list[tuple[int, Command]] = []
_things: list[tuple[int, ThingSource]] = []


def commands(position: int, *given: Command) -> None:
    """Register commands; they stand in the order of `position` while nothing is typed."""
    _commands.extend((position, command) for command in given)


def things(position: int) -> Callable[[ThingSource], ThingSource]:
    """Register a source of things."""

    def register(source: ThingSource) -> ThingSource:
        _things.append((position, source))
        return source

    return register


def every_command() -> list[Command]:
    _discover()
    return [command for _, command in sorted(_commands, key=lambda each: each[0])]


def every_source() -> list[ThingSource]:
    _discover()
    return [source for _, source in sorted(_things, key=lambda each: each[0])]


@functools.cache
def _discover() -> None:
    autodiscover_modules("palette_entries")
