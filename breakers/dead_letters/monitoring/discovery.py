"""Discovery of dead letter streams by scanning a server's keys."""

import functools
from collections.abc import Iterator
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


def discover_streams(server: RedisServer, cursor: str) -> tuple[set[str], str]:
    """Search the next keys of a server, from `cursor` on, for dead letter streams.

    Some thousand keys are scanned; an empty cursor starts over. Return the names of the matching
    streams and the cursor of the next scan. Names that are not UTF-8, or that PostgreSQL can't
    store, are skipped and logged. Raises :class:`ServerUnavailable` and :class:`ServerRefused`.
    """
    try:
        return _scan_cluster(server, cursor) if server.is_cluster else _scan_single(server, cursor)
    except redis.RedisError as error:
        raise servers.translate_error(server.name, error) from error


def _scan_single(server: RedisServer, cursor: str) -> tuple[set[str], str]:
    names: set[str] = set()
    at = cursor if cursor.isascii() and cursor.isdigit() else START
    for _ in range(MAX_CALLS):
        at, keys = _scan_keys(server, at)
        names.update(_filter_names(server.name, keys))
        if at == START:
            break
    return names, "" if at == START else at


def _scan_cluster(server: RedisServer, cursor: str) -> tuple[set[str], str]:
    """Scan the keys of a cluster's primary nodes, one node after the other, ordered by name.

    The cursor is a node's name, a space, and the SCAN cursor of that node.
    """
    names: set[str] = set()
    first_node, _, at = cursor.rpartition(" ")
    nodes = sorted(server.client.get_primaries(), key=lambda node: str(node.name))
    calls = 0
    for node in nodes:
        if str(node.name) < first_node:
            continue
        at = at if str(node.name) == first_node and at.isdigit() else START
        while True:
            if calls == MAX_CALLS:
                return names, f"{node.name} {at}"
            at, keys = _scan_keys(server, at, target_nodes=node)
            calls += 1
            names.update(_filter_names(server.name, keys))
            if at == START:
                break
    return names, ""


def _scan_keys(server: RedisServer, cursor: str, **options: Any) -> tuple[str, list[bytes]]:
    patterns = configured_sources().patterns
    glob = patterns[0].glob if len(patterns) == 1 else None
    next_cursor, keys = server.client.scan(
        int(cursor), match=glob, count=KEYS_AT_ONCE, _type="stream", **options
    )
    if isinstance(next_cursor, dict):  # A cluster client returns cursors by node.
        (next_cursor,) = next_cursor.values()
    return str(int(next_cursor)), list(keys)


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


@functools.lru_cache(maxsize=1000)  # Logs a name once, not at every scan.
def _log_skipped_name(server: str, name: str) -> None:
    log.warning("dead_letters.name_skipped", server=server, name=name[:200])
