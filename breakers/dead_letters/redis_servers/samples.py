"""Samples of streams: depth and bounds, without reading entries."""

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from breakers.dead_letters.letters import ids

from . import servers
from .servers import ScriptCall, ServerRefused

AT_ONCE = 200
CACHED_SECONDS = 60.0
MAX_CACHED = 10_000
UNCHANGED = 2


@dataclass(frozen=True)
class StreamSample:
    """State of a stream at one moment.

    `first` and `last` are the positions of its first and last entry, empty if there is none;
    `last_given` is the greatest position ever assigned. `there` is False if the key does not exist
    or is no stream.
    """

    there: bool
    depth: int
    first: str
    last: str
    last_given: str


NOT_LOOKED_AT = ids.MAX_POSITION
EMPTY_SAMPLE = StreamSample(there=False, depth=0, first="", last="", last_given="")


def sample_streams(server: str, names: Sequence[str]) -> dict[str, StreamSample]:
    """Return the samples of those streams that the server can read, by name.

    If a stream has not changed since a recent sample, its `last_given` is `NOT_LOOKED_AT`, since
    Redis can't return it without copying payloads. Raises :class:`ServerUnavailable`.
    """
    samples: dict[str, StreamSample] = {}
    for start in range(0, len(names), AT_ONCE):
        batch = names[start : start + AT_ONCE]
        cached = [_find_cached(server, name) for name in batch]
        # With the cached state as arguments, the script reports an unchanged stream as such.
        calls = [
            ScriptCall(
                [name],
                (one.depth, ids.to_entry_id(one.first), ids.to_entry_id(one.last)) if one else (),
            )
            for name, one in zip(batch, cached, strict=True)
        ]
        replies = servers.get_server(server).run_many("sample", calls)
        for name, before, reply in zip(batch, cached, replies, strict=True):
            if isinstance(reply, ServerRefused):
                continue
            if before is not None and reply[0] == UNCHANGED:
                samples[name] = replace(before, last_given=NOT_LOOKED_AT)
            else:
                samples[name] = _parse_sample(reply)
                _cache_sample(server, name, samples[name])
    return samples


def sample_stream(server: str, name: str) -> StreamSample:
    """Return the sample of one stream.

    Raises :class:`ServerUnavailable` and :class:`ServerRefused`.
    """
    return _parse_sample(servers.get_server(server).run("sample", ScriptCall([name])))


_cache: dict[tuple[str, str], tuple[float, StreamSample]] = {}
"""Recent samples of this process, each with its expiry by the monotonic clock.

Each query compares depth and bounds with the cached sample, so changes are noticed. Only a failover
to an older state with the same depth and bounds stays unnoticed until the expiry.
"""


def _find_cached(server: str, name: str) -> StreamSample | None:
    until, sample = _cache.get((server, name), (0.0, EMPTY_SAMPLE))
    return sample if sample.depth and time.monotonic() < until else None


def _cache_sample(server: str, name: str, sample: StreamSample) -> None:
    if len(_cache) >= MAX_CACHED:
        _cache.clear()
    seconds = CACHED_SECONDS * random.uniform(0.5, 1.5)  # noqa: S311 - not all at the same time
    _cache[server, name] = (time.monotonic() + seconds, sample)


def _parse_sample(reply: Any) -> StreamSample:
    there, depth, *entry_ids = reply
    positions = (ids.to_position(one.decode()) if one else "" for one in entry_ids)
    return StreamSample(bool(there), int(depth), *positions)
