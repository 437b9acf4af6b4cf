"""Lists of what gates can name, such as SLOs and dependencies, for the plan editor.

An app registers a list in its module `gate_options`; a :class:`~.fields.GateField` refers to it by
name.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils.timezone import localtime

from controlplane.core.registry import KindRegistry

MAX_OPTIONS = 200
"""Maximum options of a list; above it, the editor offers a text field with suggestions."""
NO_DATA_LABEL = "No data"
"""State of an option of which no report is known."""


@dataclass(frozen=True)
class GateOption:
    """A value that a gate's field can have, with its present state in words.

    `stale_at` is the time of the state if that is not current. `label` is the value as the list
    shows it, if that differs.
    """

    value: str
    state: str = ""
    stale_at: datetime | None = None
    label: str = ""

    def __str__(self) -> str:
        label = self.label or self.value
        if not self.state:
            return label
        at = f" at {localtime(self.stale_at):%-d %b %H:%M %Z}" if self.stale_at else ""
        return f"{label} · {self.state}{at}"


@dataclass(frozen=True)
class OptionList:
    """A list of options: `noun` is one of them ("SLO"), `load` returns the first ones.

    They are sorted by name, those without any data last.
    `find_existing` returns those of some names that exist; without it, any name is allowed.
    """

    name: str
    noun: str
    load: Callable[[datetime, int], Sequence[GateOption]]
    find_existing: Callable[[Collection[str]], Collection[str]] | None = None


OPTION_LISTS: KindRegistry[OptionList] = KindRegistry("gate_options")


def load_options(lists: Collection[str], now: datetime) -> dict[str, Sequence[GateOption]]:
    """Return the options of these lists by name; one more than `MAX_OPTIONS` if there are more."""
    return {name: OPTION_LISTS[name].load(now, MAX_OPTIONS + 1) for name in sorted(lists)}


def find_unknown(names: Mapping[str, Collection[str]]) -> dict[str, set[str]]:
    """Return those of the names, by list, that don't exist."""
    unknown = {}
    for list_name, wanted in names.items():
        find_existing = OPTION_LISTS[list_name].find_existing
        if find_existing is not None:
            unknown[list_name] = set(wanted) - set(find_existing(wanted))
    return unknown
