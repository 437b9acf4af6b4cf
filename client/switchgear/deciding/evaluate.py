"""The decision order over the switches that are not released. Pure.

Global before segment before feature before experiment, and within a scope in the order asked; the
first switch that blocks decides, and is named with its reason.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from reprlib import Repr

from switchgear.deciding.bucketing import Draw, bucket
from switchgear.deciding.snapshot import Entry, is_key

GLOBAL_ID = "global:all"
MOST_KEYS = 1000
"""Of one scope in one question."""

_SHOWN = Repr()
_SHOWN.maxstring = _SHOWN.maxother = 100


@dataclass(frozen=True, slots=True)
class Question:
    """The keys a call touches. `switch_ids` in decision order, `global:all` first."""

    switch_ids: tuple[str, ...]
    invalid: tuple[str, ...] = ()
    """What was asked for and can be no switch, as text to show."""


@dataclass(frozen=True, slots=True)
class Decision:
    """May the call go on? It counts as a truth value: `if gear.check(feature="chat"): …`.

    `switch` and `reason` name what blocks, and are None when nothing does. `version` is that of the
    snapshot that decided. `known` is False where nothing is known: no snapshot was ever had, here
    or on disk, or what was asked can be the key of no switch. Such a call is allowed.
    """

    allowed: bool
    switch: str | None = None
    reason: str | None = None
    version: int | None = None
    known: bool = True

    def __bool__(self) -> bool:
        return self.allowed


def question(segment: object = None, feature: object = None, experiments: object = ()) -> Question:
    """What is asked, from whatever the caller had at hand: one key or several of each, or None.

    Nothing is raised: what can't be a key can't be engaged either, and is named in `invalid`.
    """
    switch_ids, invalid = [GLOBAL_ID], []
    for scope, asked in (("segment", segment), ("feature", feature), ("experiment", experiments)):
        if asked is None or (type(asked) is tuple and not asked):
            continue
        try:
            if isinstance(asked, str) and is_key(asked):
                # An enum's member would be formatted as its name.
                switch_ids.append(scope + ":" + asked)
                continue
            for number, key in enumerate(_several(asked)):
                if number == MOST_KEYS:
                    invalid.append(f"{scope} after the first {MOST_KEYS}")
                    break
                if isinstance(key, str) and is_key(key):
                    switch_ids.append(scope + ":" + key)
                else:
                    invalid.append(f"{scope} {_SHOWN.repr(key)}")
        except Exception as error:  # The caller's objects raise what they like.
            invalid.append(f"{scope}, which raised {type(error).__name__}")
    return Question(tuple(dict.fromkeys(switch_ids)), tuple(invalid))


def evaluate(
    switch_ids: Iterable[str],
    entries: Mapping[str, Entry],
    targeting_key: str | None,
    *,
    now: float | None,
    draw: Draw,
) -> Entry | None:
    """The entry that blocks, or None. `now` is in UNIX seconds by the console's clock; without it
    no engagement ends by itself."""
    for switch_id in switch_ids:
        entry = entries.get(switch_id)
        if entry is not None and blocks(entry, targeting_key, now=now, draw=draw):
            return entry
    return None


def blocks(entry: Entry, targeting_key: str | None, *, now: float | None, draw: Draw) -> bool:
    """Whether this switch alone stops the call."""
    if entry.state == "ramping":
        taken = draw() if targeting_key is None else bucket(entry.salt, targeting_key)
        return taken >= entry.allow_points
    lapses_at = entry.lapses_at
    return lapses_at is None or now is None or now < lapses_at


def _several(asked: object) -> Iterable[object]:
    if isinstance(asked, str):
        return (asked,)
    if isinstance(asked, set | frozenset):
        return sorted(asked, key=str)
    return asked if isinstance(asked, Iterable) else (asked,)
