"""The Redis servers that dead letters lie on: one client for each, and its answers as they come.

Everything goes through scripts: what they give is bytes in order, where the library would make
dictionaries of fields and lose those whose name comes twice; and each is safe to repeat, so that
a connection that was lost is tried once more.
"""

import functools
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis
import redis.cluster
import redis.exceptions
from redis.backoff import NoBackoff
from redis.retry import Retry

from breakers.dead_letters.sources import configured_sources
from controlplane.core.errors import Conflict, NotFound, Unavailable

TIMEOUT_SECONDS = 2.0  # seconds
CONNECT_TIMEOUT_SECONDS = 1.0
LARGE_CALL_BYTES = 1024 * 1024  # bytes that a call carries
LARGE_CALL_TIMEOUT_SECONDS = 10.0  # seconds
CLUSTER_RETRY_SECONDS = 5.0  # seconds, once no node of a cluster has answered
CLUSTER_SCHEME = "redis+cluster://"
_SCRIPTS = Path(__file__).parent / "lua"


class ServerUnavailable(Unavailable):
    """The server does not answer, or not as it should: nothing is known of what lies there."""


class ServerRefused(Conflict):
    """The server answered that it will not do this now, and why: it has no memory left, perhaps."""


class _ClusterClient(redis.cluster.RedisCluster):
    """The library's client of a cluster, which would ask ten times over. Here a node that lets us
    wait is away, and only a connection that was lost is tried once more: the slot may be another
    node's by now."""

    def execute_command(self, *args: Any, **options: Any) -> Any:
        ask = functools.partial(super().execute_command, *args, **options)
        try:
            return ask()
        except redis.ConnectionError:
            return ask()


class _LazyCluster:
    """The methods of a client of a cluster, connected when it is first needed: connecting asks for
    its slots. What the library raises when there is no cluster is made one of its usual errors.

    It takes a while to find that no node answers. Then none is asked for a moment.
    """

    def __init__(self, url: str, options: Mapping[str, Any]) -> None:
        self._url, self._options = url, options
        self._again_at = 0.0

    def __getattr__(self, name: str) -> Any:
        return functools.partial(self._do, name)

    def _do(self, name: str, *args: Any, **options: Any) -> Any:
        if time.monotonic() < self._again_at:
            raise redis.ConnectionError("No node answered a moment ago.")
        try:
            return getattr(self._client, name)(*args, **options)
        except redis.exceptions.SlotNotCoveredError as error:
            raise redis.ConnectionError(str(error)) from error
        except redis.exceptions.RedisClusterException as error:
            self._again_at = time.monotonic() + CLUSTER_RETRY_SECONDS
            raise redis.ConnectionError(str(error)) from error

    @functools.cached_property
    def _client(self) -> redis.cluster.RedisCluster:
        return _ClusterClient.from_url(self._url, retry=Retry(NoBackoff(), 0), **self._options)


@dataclass(frozen=True)
class ScriptCall:
    """A script to be run: its keys, which share a slot, and its arguments."""

    keys: Sequence[str]
    arguments: Sequence[bytes | str | int | float] = ()

    @property
    def size_bytes(self) -> int:
        """About what it carries; numbers count for nothing."""
        return sum(len(one) for one in self.arguments if isinstance(one, bytes | str))


@dataclass(frozen=True)
class RedisServer:
    """One server, or one cluster of them, by its name. What carries a lot goes by `patient`, since
    the time for an answer is also all there is for sending."""

    name: str
    client: Any
    patient: Any

    @property
    def is_cluster(self) -> bool:
        return isinstance(self.client, _LazyCluster)

    def run(self, script: str, call: ScriptCall) -> Any:
        """What the script `lua/<script>.lua` gives. Raises :class:`ServerUnavailable` and
        :class:`ServerRefused`."""
        text = script_source(script)
        try:
            return self._client([call]).eval(text, len(call.keys), *call.keys, *call.arguments)
        except redis.RedisError as error:
            raise translate_error(self.name, error) from error

    def run_many(self, script: str, calls: Sequence[ScriptCall]) -> list[Any]:
        """What it gives for each of the calls, sent together; one that was refused has its
        :class:`ServerRefused` there. Raises :class:`ServerUnavailable`: any of them may have run.
        """
        if self.is_cluster:
            return [self._one(script, call) for call in calls]
        text = script_source(script)
        try:
            with self._client(calls).pipeline(transaction=False) as pipeline:
                for call in calls:
                    pipeline.eval(text, len(call.keys), *call.keys, *call.arguments)
                given = pipeline.execute(raise_on_error=False)
        except redis.RedisError as error:
            raise translate_error(self.name, error) from error
        return [self._judged(one) for one in given]

    def _client(self, calls: Sequence[ScriptCall]) -> Any:
        return (
            self.patient if sum(one.size_bytes for one in calls) > LARGE_CALL_BYTES else self.client
        )

    def _one(self, script: str, call: ScriptCall) -> Any:
        try:
            return self.run(script, call)
        except ServerRefused as error:
            return error

    def _judged(self, given: Any) -> Any:
        if not isinstance(given, redis.RedisError):
            return given
        error = translate_error(self.name, given)
        if isinstance(error, ServerUnavailable):
            raise error from given
        return error


def get_server(name: str) -> RedisServer:
    """The server of this name. Raises :class:`NotFound`."""
    url = configured_sources().servers.get(name)
    if url is None:
        raise NotFound(f"No Redis server is named {name!r} here.")
    return _connect(name, url)


def translate_error(name: str, error: redis.RedisError) -> ServerUnavailable | ServerRefused:
    """What went wrong, in our words: whether it may be better in a moment, or was refused."""
    refused = isinstance(error, redis.ResponseError) and not isinstance(
        error,
        (redis.BusyLoadingError, redis.AuthenticationError, redis.exceptions.ClusterDownError),
    )
    if refused:
        return ServerRefused(f"The Redis server {name} refused: {error}", server=name)
    return ServerUnavailable(f"The Redis server {name} does not answer. Try again in a moment.")


@functools.cache
def script_source(script: str) -> str:
    """The text of a script."""
    return (_SCRIPTS / f"{script}.lua").read_text()


@functools.lru_cache(maxsize=100)
def _connect(name: str, url: str) -> RedisServer:
    return RedisServer(
        name, _make_client(url, TIMEOUT_SECONDS), _make_client(url, LARGE_CALL_TIMEOUT_SECONDS)
    )


def _make_client(url: str, seconds: float) -> Any:
    options: dict[str, Any] = {
        "socket_timeout": seconds,
        "socket_connect_timeout": CONNECT_TIMEOUT_SECONDS,
        "client_name": "switchgear-dead-letters",
    }
    if url.startswith(CLUSTER_SCHEME):
        return _LazyCluster(f"redis://{url.removeprefix(CLUSTER_SCHEME)}", options)
    again = Retry(NoBackoff(), 1, supported_errors=(redis.ConnectionError,))
    return redis.Redis.from_url(url, retry=again, **options)
