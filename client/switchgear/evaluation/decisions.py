"""The decision order over the switches that are not released. Pure.

Global before segment before feature before experiment, and within a scope in the order asked; the
first switch that blocks decides, and is named with its reason.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from reprlib import Repr

from switchgear.evaluation.bucketing import Draw, bucket
from switchgear.evaluation.keys import key_text
from switchgear.evaluation.scopes import GLOBAL_ID, SCOPES
from switchgear.evaluation.snapshot import Entry, is_key

MAX_KEYS = 1000
"""Of one scope in one question."""

_KEYED = tuple((scope.parameter, scope.name) for scope in SCOPES.values() if scope.parameter)
_SHOWN = Repr()
_SHOWN.maxstring = _SHOWN.maxother = 100


@dataclass(frozen=True, slots=True)
class Question:
    """The keys a call touches. `switch_ids` in decision order, `global:all` first."""

    switch_ids: tuple[str, ...]
    invalid: tuple[str, ...] = ()
    """Strings that are not valid keys, with their arguments, for the log."""
    wrong_types: tuple[str, ...] = ()
    """Types that a key can't have, with their arguments, for the log."""

    @property
    def is_known(self) -> bool:
        """True if every key in the question is valid."""
        return not self.invalid and not self.wrong_types


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
    """Return the question for one key, several, or None of each kind.

    Never raises: a value that can't be a key can't be engaged either, and is listed in the
    question.
    """
    switch_ids: list[str] = [GLOBAL_ID]
    invalid: list[str] = []
    wrong_types: list[str] = []
    for (name, scope), asked in zip(_KEYED, (segment, feature, experiments), strict=True):
        if asked is None or (type(asked) is tuple and not asked):
            continue
        try:
            if type(asked) is str and is_key(asked):
                switch_ids.append(scope + ":" + asked)
                continue
            for number, key in enumerate(several(asked, name)):
                if number == MAX_KEYS:
                    invalid.append(f"{name} after the first {MAX_KEYS}")
                    break
                text = key_text(key)
                if text is None:
                    wrong_types.append(f"{name} can't be of type {type(key).__name__:.100}")
                elif is_key(text):
                    switch_ids.append(scope + ":" + text)
                else:
                    invalid.append(f"{name} {_SHOWN.repr(text)}")
        except Exception as error:  # The caller's objects raise what they like.
            kind = type(asked).__name__
            wrong_types.append(f"{name} of type {kind:.100} raised {type(error).__name__}")
    unique = tuple(dict.fromkeys(switch_ids))
    return Question(unique, tuple(invalid), tuple(dict.fromkeys(wrong_types)))


def several(asked: object, name: str) -> Iterable[object]:
    """Return the keys in `asked`, which may be one or several.

    A mapping stands for several experiments, by their names. As a segment or a feature it is not a
    valid key.
    """
    if isinstance(asked, str | bytes | bytearray | memoryview):
        return (asked,)
    if isinstance(asked, Mapping) and name != "experiments":
        return (asked,)
    if isinstance(asked, set | frozenset):
        return sorted(asked, key=str)
    return asked if isinstance(asked, Iterable) else (asked,)


def evaluate(
    switch_ids: Iterable[str],
    entries: Mapping[str, Entry],
    targeting_key: str | None,
    *,
    now: float | None,
    draw: Draw,
) -> Entry | None:
    """Return the entry that blocks, or None. `now` is in UNIX seconds by the console's clock;
    without it no engagement ends by itself."""
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
