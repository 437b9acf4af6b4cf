"""Discovery of streams of dead letters by scanning a server's keys."""

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import redis
import structlog

from breakers.dead_letters.redis_servers import servers
from breakers.dead_letters.redis_servers.servers import RedisServer
from breakers.dead_letters.sources import configured_sources

from . import streams

MAX_CALLS = 20
KEYS_AT_ONCE = 1000
START = "0"
log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class DiscoveredStreams:
    """Names of matching streams, and the cursor of the next scan."""

    names: frozenset[str]
    cursor: str


def discover_streams(server: RedisServer, cursor: str) -> DiscoveredStreams:
    """Scan some thousand keys from `cursor` on (empty: from the start).

    Names that are not UTF-8, or that PostgreSQL can't store, are skipped and logged. Raises
    :class:`ServerUnavailable` and :class:`ServerRefused`.
    """
    try:
        return _scan_cluster(server, cursor) if server.is_cluster else _scan_single(server, cursor)
    except redis.RedisError as error:
        raise servers.translate_error(server.name, error) from error


def _scan_single(server: RedisServer, cursor: str) -> DiscoveredStreams:
    names: set[str] = set()
    at = cursor if cursor.isascii() and cursor.isdigit() else START
    for _ in range(MAX_CALLS):
        at, keys = _scan(server, at)
        names.update(_filter_names(server.name, keys))
        if at == START:
            break
    return DiscoveredStreams(frozenset(names), "" if at == START else at)


def _scan_cluster(server: RedisServer, cursor: str) -> DiscoveredStreams:
    """Scan one node after the other, by name; the cursor has the node and the position in it."""
    names: set[str] = set()
    began, _, at = cursor.rpartition(" ")
    nodes = sorted(server.client.get_primaries(), key=lambda node: str(node.name))
    waiting = [node for node in nodes if str(node.name) >= began]
    calls = 0
    for node in waiting:
        at = at if str(node.name) == began and at.isdigit() else START
        while True:
            if calls == MAX_CALLS:
                return DiscoveredStreams(frozenset(names), f"{node.name} {at}")
            at, keys = _scan(server, at, target_nodes=node)
            calls += 1
            names.update(_filter_names(server.name, keys))
            if at == START:
                break
    return DiscoveredStreams(frozenset(names), "")


def _scan(server: RedisServer, cursor: str, **where: Any) -> tuple[str, list[bytes]]:
    patterns = configured_sources().patterns
    glob = patterns[0].glob if len(patterns) == 1 else None
    given = server.client.scan(int(cursor), match=glob, count=KEYS_AT_ONCE, _type="stream", **where)
    following, keys = given
    if isinstance(following, dict):  # A cluster's client says it for each node it asked.
        (following,) = following.values()
    return str(int(following)), list(keys)


def _filter_names(server: str, keys: list[bytes]) -> Iterator[str]:
    sources = configured_sources()
    for key in keys:
        name = key.decode("utf-8", "backslashreplace")
        if sources.origin_of(name) is None:
            continue
        if name.encode() == key and streams.is_valid_name(name):
            yield name
        else:
            _log_skipped_name(server, name)


@functools.lru_cache(maxsize=1000)  # Once, not at every look.
def _log_skipped_name(server: str, name: str) -> None:
    log.warning("dead_letters.name_passed_over", server=server, name=name[:200])
