"""Clients of the Redis servers that hold dead letters, and the scripts they run.

All access is by Lua scripts: they return fields in order, where redis-py would build dictionaries
and lose repeated names. Each script is idempotent, so a lost connection is retried once.
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

TIMEOUT_SECONDS = 2.0
CONNECT_TIMEOUT_SECONDS = 1.0
LARGE_CALL_BYTES = 1024 * 1024
LARGE_CALL_TIMEOUT_SECONDS = 10.0
CLUSTER_RETRY_SECONDS = 5.0
CLUSTER_SCHEME = "redis+cluster://"
_SCRIPTS = Path(__file__).parent / "lua"


class ServerUnavailable(Unavailable):
    """Raised if the server does not respond, or fails temporarily."""


class ServerRefused(Conflict):
    """Raised if the server refuses the call, for example because it is out of memory."""


class _ClusterClient(redis.cluster.RedisCluster):
    """A cluster client that retries a lost connection once, as the slot may have moved."""

    def execute_command(self, *args: Any, **options: Any) -> Any:
        execute = functools.partial(super().execute_command, *args, **options)
        try:
            return execute()
        except redis.ConnectionError:
            return execute()


class _LazyCluster:
    """A cluster client that connects on first use, since connecting loads the map of slots.

    Cluster errors are raised as :class:`redis.ConnectionError`. If no node responds, calls fail
    immediately for the next seconds, since each attempt to connect takes long.
    """

    def __init__(self, url: str, options: Mapping[str, Any]) -> None:
        self._url, self._options = url, options
        self._retry_at = 0.0

    def __getattr__(self, name: str) -> Any:
        return functools.partial(self._call, name)

    def _call(self, name: str, *args: Any, **options: Any) -> Any:
        if time.monotonic() < self._retry_at:
            raise redis.ConnectionError("No node responded a moment ago.")
        try:
            return getattr(self._client, name)(*args, **options)
        except redis.exceptions.SlotNotCoveredError as error:
            raise redis.ConnectionError(str(error)) from error
        except redis.exceptions.RedisClusterException as error:
            self._retry_at = time.monotonic() + CLUSTER_RETRY_SECONDS
            raise redis.ConnectionError(str(error)) from error

    @functools.cached_property
    def _client(self) -> redis.cluster.RedisCluster:
        return _ClusterClient.from_url(self._url, retry=Retry(NoBackoff(), 0), **self._options)


@dataclass(frozen=True)
class ScriptCall:
    """Keys and arguments for one run of a Lua script; the keys share a cluster slot."""

    keys: Sequence[str]
    arguments: Sequence[bytes | str | int | float] = ()

    @property
    def size_bytes(self) -> int:
        """Approximate size of the arguments; numbers are not counted."""
        return sum(len(one) for one in self.arguments if isinstance(one, bytes | str))


@dataclass(frozen=True)
class RedisServer:
    """A Redis server or cluster; `patient` is a client with a longer timeout, for large calls."""

    name: str
    client: Any
    patient: Any

    @property
    def is_cluster(self) -> bool:
        return isinstance(self.client, _LazyCluster)

    def run(self, script: str, call: ScriptCall) -> Any:
        """Run the script `lua/<script>.lua` and return its result.

        Raises :class:`ServerUnavailable` and :class:`ServerRefused`.
        """
        text = script_source(script)
        try:
            return self._client([call]).eval(text, len(call.keys), *call.keys, *call.arguments)
        except redis.RedisError as error:
            raise translate_error(self.name, error) from error

    def run_many(self, script: str, calls: Sequence[ScriptCall]) -> list[Any]:
        """Run the script once per call; return the results, a :class:`ServerRefused` for errors.

        Raises :class:`ServerUnavailable`, after which any of the calls may have run.
        """
        if self.is_cluster:
            return [self._run_one(script, call) for call in calls]
        text = script_source(script)
        try:
            with self._client(calls).pipeline(transaction=False) as pipeline:
                for call in calls:
                    pipeline.eval(text, len(call.keys), *call.keys, *call.arguments)
                replies = pipeline.execute(raise_on_error=False)
        except redis.RedisError as error:
            raise translate_error(self.name, error) from error
        return [self._translate_reply(one) for one in replies]

    def _client(self, calls: Sequence[ScriptCall]) -> Any:
        is_large = sum(one.size_bytes for one in calls) > LARGE_CALL_BYTES
        return self.patient if is_large else self.client

    def _run_one(self, script: str, call: ScriptCall) -> Any:
        try:
            return self.run(script, call)
        except ServerRefused as error:
            return error

    def _translate_reply(self, reply: Any) -> Any:
        if not isinstance(reply, redis.RedisError):
            return reply
        error = translate_error(self.name, reply)
        if isinstance(error, ServerUnavailable):
            raise error from reply
        return error


def get_server(name: str) -> RedisServer:
    """Return the server of this name. Raises :class:`NotFound`."""
    url = configured_sources().servers.get(name)
    if url is None:
        raise NotFound(f"There is no Redis server {name!r}.")
    return _connect(name, url)


def translate_error(name: str, error: redis.RedisError) -> ServerUnavailable | ServerRefused:
    """Return :class:`ServerRefused` for a refused command, else :class:`ServerUnavailable`."""
    transient = (
        redis.BusyLoadingError,
        redis.AuthenticationError,
        redis.exceptions.ClusterDownError,
    )
    if isinstance(error, redis.ResponseError) and not isinstance(error, transient):
        return ServerRefused(f"The Redis server {name} returned an error: {error}", server=name)
    return ServerUnavailable(f"The Redis server {name} does not respond. Try again in a moment.")


@functools.cache
def script_source(script: str) -> str:
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
    retry = Retry(NoBackoff(), 1, supported_errors=(redis.ConnectionError,))
    return redis.Redis.from_url(url, retry=retry, **options)
