"""How streams of dead letters stand on their servers, without a look at what lies in them."""

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from breakers.dead_letters.letters import ids

from . import servers
from .servers import ScriptCall, ServerRefused

AT_ONCE = 200
REMEMBERED_SECONDS = 60.0
MAX_REMEMBERED = 10_000
AS_KNOWN = 2


@dataclass(frozen=True)
class StreamSample:
    """A stream at one moment: its depth, and positions of its first and its last entry (empty: it
    has none), and of the last that it ever had. It is not `there` when there is no such key, or
    when what is stored there is no stream."""

    there: bool
    depth: int
    first: str
    last: str
    last_given: str


NOT_LOOKED_AT = ids.to_position(f"{ids.MAX_PART}-{ids.MAX_PART}")
EMPTY_SAMPLE = StreamSample(there=False, depth=0, first="", last="", last_given="")


def sample_streams(server: str, names: Sequence[str]) -> dict[str, StreamSample]:
    """How the streams of these names stand, by name; one that the server refuses to tell of is left
    out. Raises :class:`servers.ServerUnavailable`.

    Of a stream that stands as it did a moment ago the last id ever given is not looked at, as the
    server could not tell without copying payloads: it is said to be `NOT_LOOKED_AT` then.
    """
    found: dict[str, StreamSample] = {}
    for start in range(0, len(names), AT_ONCE):
        asked = names[start : start + AT_ONCE]
        known = [_recall(server, name) for name in asked]
        calls = [
            ScriptCall([name], _known_arguments(one))
            for name, one in zip(asked, known, strict=True)
        ]
        given = servers.get_server(server).run_many("sample", calls)
        for name, before, told in zip(asked, known, given, strict=True):
            if isinstance(told, ServerRefused):
                continue
            if before is not None and told[0] == AS_KNOWN:
                found[name] = replace(before, last_given=NOT_LOOKED_AT)
            else:
                found[name] = _parse_sample(told)
                _remember(server, name, found[name])
    return found


def sample_stream(server: str, name: str) -> StreamSample:
    """How one stream stands. Raises :class:`servers.ServerUnavailable` and
    :class:`servers.ServerRefused`."""
    return _parse_sample(servers.get_server(server).run("sample", ScriptCall([name])))


_remembered: dict[tuple[str, str], tuple[float, StreamSample]] = {}
"""The last whole looks of this process, and until when they are believed. The server checks them,
so that what others did meanwhile does not matter; only an older state of as many entries within the
same bounds, after a failover, is taken for the same until then."""


def _recall(server: str, name: str) -> StreamSample | None:
    until, known = _remembered.get((server, name), (0.0, EMPTY_SAMPLE))
    return known if known.depth and time.monotonic() < until else None


def _remember(server: str, name: str, sample: StreamSample) -> None:
    if len(_remembered) >= MAX_REMEMBERED:
        _remembered.clear()
    seconds = REMEMBERED_SECONDS * random.uniform(0.5, 1.5)  # noqa: S311 - not all at the same time
    _remembered[server, name] = (time.monotonic() + seconds, sample)


def _known_arguments(known: StreamSample | None) -> tuple[int | str, ...]:
    if known is None:
        return ()
    return (known.depth, ids.to_entry_id(known.first), ids.to_entry_id(known.last))


def _parse_sample(given: Any) -> StreamSample:
    there, depth, *places = given
    first, last, last_given = (_to_position(place) for place in places)
    return StreamSample(bool(there), int(depth), first, last, last_given)


def _to_position(entry_id: bytes) -> str:
    return ids.to_position(entry_id.decode()) if entry_id else ""
