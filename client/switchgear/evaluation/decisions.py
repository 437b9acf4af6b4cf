"""The order in which switches decide on a call. Pure.

The order is global, segment, feature, experiment, and within a scope the order of the query. The
first switch that blocks decides, and the decision names it and its reason.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from reprlib import Repr

from switchgear.evaluation.bucketing import BucketDraw, bucket
from switchgear.evaluation.keys import key_text
from switchgear.evaluation.scopes import GLOBAL_ID, SCOPES
from switchgear.evaluation.snapshot import SwitchEntry, is_valid_key

MAX_KEYS = 1000
"""Maximum number of keys of one scope in a query."""

_KEYED = tuple((scope.parameter, scope.name) for scope in SCOPES.values() if scope.parameter)
_repr = Repr()
_repr.maxstring = _repr.maxother = 100


@dataclass(frozen=True, slots=True)
class SwitchQuery:
    """The switches to check for one call: `switch_ids` in decision order, `global:all` first."""

    switch_ids: tuple[str, ...]
    invalid: tuple[str, ...] = ()
    """Strings that are not valid keys, each with the name of its argument, for the log."""
    wrong_types: tuple[str, ...] = ()
    """Types that a key can't have, each with the name of its argument, for the log."""

    @property
    def is_known(self) -> bool:
        """True if every key given for the call is valid."""
        return not self.invalid and not self.wrong_types


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision on a call, true if the call is allowed: `if gear.check(feature="chat"): …`.

    `switch` and `reason` name the switch that blocks, and are None if none does. `version` is the
    version of the snapshot. `known` is False without a snapshot, and for keys that no switch can
    have.
    """

    allowed: bool
    switch: str | None = None
    reason: str | None = None
    version: int | None = None
    known: bool = True

    def __bool__(self) -> bool:
        return self.allowed


def make_query(
    segment: object = None, feature: object = None, experiments: object = ()
) -> SwitchQuery:
    """Return the query for a call with these keys; each argument is one key, several, or None.

    Never raises: a value that can't be a key is listed in the query's `invalid` or `wrong_types`.
    """
    switch_ids: list[str] = [GLOBAL_ID]
    invalid: list[str] = []
    wrong_types: list[str] = []
    for (name, scope), given in zip(_KEYED, (segment, feature, experiments), strict=True):
        if given is None or (type(given) is tuple and not given):
            continue
        try:
            if type(given) is str and is_valid_key(given):
                switch_ids.append(scope + ":" + given)
                continue
            for number, key in enumerate(iter_keys(given, name)):
                if number == MAX_KEYS:
                    invalid.append(f"{name} after the first {MAX_KEYS}")
                    break
                text = key_text(key)
                if text is None:
                    wrong_types.append(f"{name} has the unsupported type {type(key).__name__:.100}")
                elif is_valid_key(text):
                    switch_ids.append(scope + ":" + text)
                else:
                    invalid.append(f"{name} {_repr.repr(text)}")
        except Exception as error:  # The methods of the caller's objects may raise.
            kind = type(given).__name__
            wrong_types.append(f"{name} of type {kind:.100} raised {type(error).__name__}")
    unique = tuple(dict.fromkeys(switch_ids))
    return SwitchQuery(unique, tuple(invalid), tuple(dict.fromkeys(wrong_types)))


def iter_keys(given: object, name: str) -> Iterable[object]:
    """Return the keys in `given`, the value of the argument `name`: one key or several.

    A mapping given as `experiments` stands for its keys; as a segment or a feature it is returned
    as one key, which is invalid.
    """
    if isinstance(given, str | bytes | bytearray | memoryview):
        return (given,)
    if isinstance(given, Mapping) and name != "experiments":
        return (given,)
    if isinstance(given, set | frozenset):
        return sorted(given, key=str)
    return given if isinstance(given, Iterable) else (given,)


def evaluate(
    switch_ids: Iterable[str],
    entries: Mapping[str, SwitchEntry],
    targeting_key: str | None,
    *,
    now: float | None,
    draw: BucketDraw,
) -> SwitchEntry | None:
    """Return the entry of the first switch that blocks the call, or None.

    `now` is in UNIX seconds by the console's clock; if it is None, expiry times are ignored. `draw`
    returns a random bucket for a call without a targeting key.
    """
    for switch_id in switch_ids:
        entry = entries.get(switch_id)
        if entry is not None and blocks(entry, targeting_key, now=now, draw=draw):
            return entry
    return None


def blocks(
    entry: SwitchEntry, targeting_key: str | None, *, now: float | None, draw: BucketDraw
) -> bool:
    """Return True if the switch of `entry` blocks the call, regardless of other switches."""
    if entry.state == "ramping":
        point = draw() if targeting_key is None else bucket(entry.salt, targeting_key)
        return point >= entry.allow_points
    lapses_at = entry.lapses_at
    return lapses_at is None or now is None or now < lapses_at
