"""Looking for streams of dead letters on a server: through some of its keys, and on from there."""

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import redis
import structlog

from breakers.dead_letters import configured
from breakers.dead_letters.redis_servers import servers
from breakers.dead_letters.redis_servers.servers import Server

from . import streams

MAX_CALLS = 20
KEYS_AT_ONCE = 1000
START = "0"
log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Found:
    """Names of streams that patterns match, and where the next look goes on."""

    names: frozenset[str]
    cursor: str


def look(server: Server, cursor: str) -> Found:
    """Go on from `cursor` (empty: from the start) through some thousand keys, or all there are.

    Names that are not UTF-8, or that PostgreSQL can't take, are passed over and logged.
    Raises :class:`servers.ServerAway` and :class:`servers.ServerRefused`.
    """
    try:
        return _cluster(server, cursor) if server.is_cluster else _single(server, cursor)
    except redis.RedisError as error:
        raise servers.told(server.name, error) from error


def _single(server: Server, cursor: str) -> Found:
    names: set[str] = set()
    at = cursor if cursor.isascii() and cursor.isdigit() else START
    for _ in range(MAX_CALLS):
        at, keys = _scan(server, at)
        names.update(_ours(server.name, keys))
        if at == START:
            break
    return Found(frozenset(names), "" if at == START else at)


def _cluster(server: Server, cursor: str) -> Found:
    """One node after the other, by name; the cursor says which, and where in it."""
    names: set[str] = set()
    began, _, at = cursor.rpartition(" ")
    nodes = sorted(server.client.get_primaries(), key=lambda node: str(node.name))
    waiting = [node for node in nodes if str(node.name) >= began]
    calls = 0
    for node in waiting:
        at = at if str(node.name) == began and at.isdigit() else START
        while True:
            if calls == MAX_CALLS:
                return Found(frozenset(names), f"{node.name} {at}")
            at, keys = _scan(server, at, target_nodes=node)
            calls += 1
            names.update(_ours(server.name, keys))
            if at == START:
                break
    return Found(frozenset(names), "")


def _scan(server: Server, cursor: str, **where: Any) -> tuple[str, list[bytes]]:
    patterns = configured.sources().patterns
    glob = patterns[0].glob if len(patterns) == 1 else None
    given = server.client.scan(int(cursor), match=glob, count=KEYS_AT_ONCE, _type="stream", **where)
    following, keys = given
    if isinstance(following, dict):  # A cluster's client says it for each node it asked.
        (following,) = following.values()
    return str(int(following)), list(keys)


def _ours(server: str, keys: list[bytes]) -> Iterator[str]:
    sources = configured.sources()
    for key in keys:
        name = key.decode("utf-8", "backslashreplace")
        if sources.origin_of(name) is None:
            continue
        if name.encode() == key and streams.is_name(name):
            yield name
        else:
            _say_passed_over(server, name)


@functools.lru_cache(maxsize=1000)  # Once, not at every look.
def _say_passed_over(server: str, name: str) -> None:
    log.warning("dead_letters.name_passed_over", server=server, name=name[:200])
