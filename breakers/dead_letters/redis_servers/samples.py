"""How streams of dead letters stand on their servers, without a look at what lies in them."""

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from breakers.dead_letters.letters import ids

from . import servers
from .servers import Call, ServerRefused

AT_ONCE = 200
BELIEVED_SECONDS = 60.0
MAX_REMEMBERED = 10_000
AS_KNOWN = 2


@dataclass(frozen=True)
class Sample:
    """A stream at one moment: its depth, and positions of its first and its last entry (empty: it
    has none), and of the last that it ever had. It is not `there` when there is no such key, or
    when what is stored there is no stream."""

    there: bool
    depth: int
    first: str
    last: str
    last_given: str


NOT_LOOKED_AT = ids.position(f"{ids.MAX_PART}-{ids.MAX_PART}")
NOTHING = Sample(there=False, depth=0, first="", last="", last_given="")


def of(server: str, names: Sequence[str]) -> dict[str, Sample]:
    """How the streams of these names stand, by name; one that the server refuses to tell of is left
    out. Raises :class:`servers.ServerAway`.

    Of a stream that stands as it did a moment ago the last id ever given is not looked at, as the
    server could not tell without copying payloads: it is said to be `NOT_LOOKED_AT` then.
    """
    found: dict[str, Sample] = {}
    for start in range(0, len(names), AT_ONCE):
        asked = names[start : start + AT_ONCE]
        known = [_known(server, name) for name in asked]
        calls = [Call([name], _as_told(one)) for name, one in zip(asked, known, strict=True)]
        given = servers.of(server).run_many("sample", calls)
        for name, before, told in zip(asked, known, given, strict=True):
            if isinstance(told, ServerRefused):
                continue
            if before is not None and told[0] == AS_KNOWN:
                found[name] = replace(before, last_given=NOT_LOOKED_AT)
            else:
                found[name] = _sample(told)
                _remember(server, name, found[name])
    return found


def one(server: str, name: str) -> Sample:
    """How one stream stands. Raises :class:`servers.ServerAway` and
    :class:`servers.ServerRefused`."""
    return _sample(servers.of(server).run("sample", Call([name])))


_remembered: dict[tuple[str, str], tuple[float, Sample]] = {}
"""The last whole looks of this process, and until when they are believed. The server checks them,
so that what others did meanwhile does not matter; only an older state of as many entries within the
same bounds, after a failover, is taken for the same until then."""


def _known(server: str, name: str) -> Sample | None:
    until, known = _remembered.get((server, name), (0.0, NOTHING))
    return known if known.depth and time.monotonic() < until else None


def _remember(server: str, name: str, sample: Sample) -> None:
    if len(_remembered) >= MAX_REMEMBERED:
        _remembered.clear()
    seconds = BELIEVED_SECONDS * random.uniform(0.5, 1.5)  # noqa: S311 - not all at the same time
    _remembered[server, name] = (time.monotonic() + seconds, sample)


def _as_told(known: Sample | None) -> tuple[int | str, ...]:
    if known is None:
        return ()
    return (known.depth, ids.entry_id(known.first), ids.entry_id(known.last))


def _sample(given: Any) -> Sample:
    there, depth, *places = given
    first, last, last_given = (_position(place) for place in places)
    return Sample(bool(there), int(depth), first, last, last_given)


def _position(entry_id: bytes) -> str:
    return ids.position(entry_id.decode()) if entry_id else ""
