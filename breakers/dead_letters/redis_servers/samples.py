"""Samples of streams on their servers, without reading entries."""

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
    """A stream at one moment.

    It has the depth, the positions of the first and last entry (empty: none), and the last position
    ever given. `there` is False if the key does not exist or is no stream.
    """

    there: bool
    depth: int
    first: str
    last: str
    last_given: str


NOT_LOOKED_AT = ids.to_position(f"{ids.MAX_PART}-{ids.MAX_PART}")
EMPTY_SAMPLE = StreamSample(there=False, depth=0, first="", last="", last_given="")


def sample_streams(server: str, names: Sequence[str]) -> dict[str, StreamSample]:
    """Return samples by name; streams that the server refuses are left out.

    Raises :class:`ServerUnavailable`. For a stream unchanged since a moment ago the last id ever
    given is `NOT_LOOKED_AT`, as Redis could not tell it without copying payloads.
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
        for name, before, answer in zip(asked, known, given, strict=True):
            if isinstance(answer, ServerRefused):
                continue
            if before is not None and answer[0] == AS_KNOWN:
                found[name] = replace(before, last_given=NOT_LOOKED_AT)
            else:
                found[name] = _parse_sample(answer)
                _remember(server, name, found[name])
    return found


def sample_stream(server: str, name: str) -> StreamSample:
    """Return the sample of one stream.

    Raises :class:`ServerUnavailable` and :class:`ServerRefused`.
    """
    return _parse_sample(servers.get_server(server).run("sample", ScriptCall([name])))


_remembered: dict[tuple[str, str], tuple[float, StreamSample]] = {}
"""Recent complete samples of this process, and until when they are used.

The server verifies them, so changes by others don't matter; only an older state after a failover,
with as many entries within the same bounds, passes as unchanged until then.
"""


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
