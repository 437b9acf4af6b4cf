"""Switches as OpenFeature boolean flags, which are on while traffic is allowed. Pure.

Of thousands of flags only a few depend on the targeting key. Therefore the response with all flags
is rendered once per snapshot, with gaps for those few.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import orjson

from switches.bucketing import BUCKETS, admits
from switches.evaluate import CallQuestion, evaluate, lapses_at
from switches.scopes import GLOBAL_ID, SCOPES
from switches.snapshot import SnapshotEntry

from .compression import GzipForm
from .served_copy import Copy

STATIC = "STATIC"
DISABLED = "DISABLED"
SPLIT = "SPLIT"


def evaluate_flag(
    copy: Copy, flag: str, targeting_key: str | None, now: datetime
) -> dict[str, Any]:
    """Return the evaluation of one flag, by the same decision as `/check`."""
    name = flag.partition(":")[0]
    may_block = name in SCOPES and not SCOPES[name].stops_everything
    ids = (GLOBAL_ID, flag) if may_block else (GLOBAL_ID,)
    question = CallQuestion(ids, targeting_key)
    decision = evaluate(question, copy.entries, now=now, draw=_draw_outside)
    version = copy.publication.version
    if decision.switch is not None:
        return _make_off(flag, copy.entries[decision.switch], version)
    entries = (copy.entries.get(switch_id) for switch_id in question.switch_ids)
    splits = any(entry is not None and entry.state == "ramping" for entry in entries)
    return _make_on(flag, SPLIT if splits else STATIC, version)


class Flags:
    """All known flags, evaluated against one copy of the snapshot."""

    def __init__(self, copy: Copy, known: frozenset[str]) -> None:
        self._copy = copy
        self._known = known
        expiries = (lapses_at(entry) for entry in copy.entries.values())
        self._lapses = sorted(at for at in expiries if at is not None)
        self._sheet: tuple[int, FlagSheet] | None = None

    def count_expired(self, now: datetime) -> int:
        """Return the number of engagements that have expired since the snapshot was published."""
        return bisect_right(self._lapses, now)

    @property
    def latest(self) -> "FlagSheet | None":
        return None if self._sheet is None else self._sheet[1]

    def sheet(self, now: datetime) -> "FlagSheet":
        """Return the JSON of all flags at `now`, cached until another engagement expires."""
        lapsed = self.count_expired(now)
        if self._sheet is None or self._sheet[0] != lapsed:
            self._sheet = (lapsed, self._render(now))
        return self._sheet[1]

    def _render(self, now: datetime) -> "FlagSheet":
        live = {
            entry.id: entry
            for entry in self._copy.entries.values()
            if (at := lapses_at(entry)) is None or now < at
        }
        ids = sorted(self._known | self._copy.entries.keys())
        version = self._copy.publication.version
        above = live.get(GLOBAL_ID)
        if above is None:
            return FlagSheet.join(_render_flags(ids, live, STATIC, version))
        stopped = FlagSheet.join(orjson.dumps(_make_off(flag, above, version)) for flag in ids)
        if above.state == "engaged":
            return stopped
        flowing = FlagSheet.join(_render_flags(ids, live, SPLIT, version))
        return FlagSheet(flowing.texts, flowing.gaps, above, stopped.texts[0])


@dataclass(frozen=True, slots=True)
class VariableFlag:
    """A flag whose value depends on the targeting key, with the JSON of both values."""

    entry: SnapshotEntry
    on: bytes
    off: bytes


Cell = bytes | VariableFlag


@dataclass(frozen=True, slots=True)
class FlagSheet:
    """The JSON of all flags, in which only a few flags depend on the targeting key.

    `texts` are the fixed parts; between each two of them stands one of the variable flags `gaps`.
    While the global switch is ramping, `ramping` is its snapshot entry; a targeting key outside its
    share gets `stopped` instead of all this.
    """

    texts: tuple[bytes, ...]
    gaps: tuple[VariableFlag, ...]
    ramping: SnapshotEntry | None = None
    stopped: bytes = b""
    gzip_forms: dict[tuple[bool, ...], GzipForm] = field(default_factory=dict, compare=False)
    """Cached gzip forms of whole responses, by the result of :meth:`outcomes`."""

    @classmethod
    def join(cls, cells: Iterable[Cell]) -> "FlagSheet":
        runs: list[list[bytes]] = [[]]
        gaps: list[VariableFlag] = []
        for cell in cells:
            if isinstance(cell, VariableFlag):
                gaps.append(cell)
                runs.append([])
            else:
                runs[-1].append(cell)
        texts = []
        for number, run in enumerate(runs):
            before = b"," if number and run else b""
            after = b"," if number < len(gaps) and (number or run) else b""
            texts.append(before + b",".join(run) + after)
        return cls(tuple(texts), tuple(gaps))

    def outcomes(self, targeting_key: str | None) -> tuple[bool, ...]:
        """Return the values of the variable flags in `gaps` for a targeting key, in order.

        The result is empty if there are none, or if the key is outside the global switch's share.
        """
        if self.ramping is not None and not _is_admitted(self.ramping, targeting_key):
            return ()
        return tuple(_is_admitted(gap.entry, targeting_key) for gap in self.gaps)

    def fill(self, targeting_key: str | None) -> bytes:
        """Return the JSON of all flags for a targeting key, separated by commas."""
        outcomes = self.outcomes(targeting_key)
        if self.ramping is not None and not outcomes:
            return self.stopped
        parts = [self.texts[0]]
        for gap, text, is_on in zip(self.gaps, self.texts[1:], outcomes, strict=True):
            parts.append(gap.on if is_on else gap.off)
            parts.append(text)
        return b"".join(parts)


def _render_flags(
    ids: Iterable[str], live: Mapping[str, SnapshotEntry], flowing: str, version: int
) -> Iterator[Cell]:
    # Most flags are released: format bytes instead of a dictionary each, for speed.
    form = orjson.dumps(_make_on("%b", flowing, version)).replace(b'"%b"', b"%b")
    for flag in ids:
        entry = live.get(flag)
        if entry is None:
            named = orjson.dumps(flag)
            yield form % (named, named)
        elif entry.state == "engaged":
            yield orjson.dumps(_make_off(flag, entry, version))
        else:
            on, off = _make_on(flag, SPLIT, version), _make_off(flag, entry, version)
            yield VariableFlag(entry, orjson.dumps(on), orjson.dumps(off))


def _make_on(flag: str, reason: str, version: int) -> dict[str, Any]:
    metadata = {"switch": flag, "version": version}
    return {"key": flag, "value": True, "variant": "on", "reason": reason, "metadata": metadata}


def _make_off(flag: str, entry: SnapshotEntry, version: int) -> dict[str, Any]:
    reason = DISABLED if entry.state == "engaged" else SPLIT
    metadata = {"switch": entry.id, "version": version, "cause": entry.reason}
    if entry.emergency:
        metadata["emergency"] = entry.emergency
    return {"key": flag, "value": False, "variant": "off", "reason": reason, "metadata": metadata}


def _is_admitted(entry: SnapshotEntry, targeting_key: str | None) -> bool:
    return admits(entry.allow_percent, entry.salt, targeting_key, _draw_outside)


def _draw_outside() -> int:
    """Return a bucket outside every ramp's share, for requests without a targeting key."""
    return BUCKETS
