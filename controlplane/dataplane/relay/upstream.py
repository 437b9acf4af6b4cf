"""HTTP connections of a relay to its upstream."""

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any

import orjson

from controlplane.core.protocol import RELAY_LOST_VERSION, RELAY_STREAM
from controlplane.dataplane.config import RelayConfig

from .event_stream import Event, EventParser, EventTooLarge
from .lost_versions import SignedSnapshot, VersionFate, parse_fate
from .upstream_transport import make_client

if TYPE_CHECKING:
    import httpx

KEYS_PATH = "/api/v1/keys"
SILENCE_SECONDS = 6.0
"""Longest time without a byte, after which an upstream counts as lost."""
MAX_ANSWER_BYTES = 64 * 1024
MAX_PAUSE_SECONDS = 5.0
UNSUPPORTED = {400, 404, 405, 413, 422}


class UpstreamFailed(Exception):
    """A failed request; the text is the reason, and `retry_after` the time to wait, in seconds."""

    def __init__(self, reason: str, retry_after: float = 0.0) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


class NotSupported(UpstreamFailed):
    """The upstream can't answer this request, now or later."""


class TokenRefused(UpstreamFailed):
    """The upstream doesn't accept the relay's token."""


class Upstream:
    """The requests of a relay to one of its upstreams, all with its token.

    Use as a context manager of :func:`connect`.
    """

    def __init__(self, config: RelayConfig, client: "httpx.AsyncClient") -> None:
        self._config = config
        self._client = client

    async def read_keys(self, url: str) -> Any:
        """Return the document of the upstream's public keys; raise :class:`UpstreamFailed`."""
        async with self._request(url + KEYS_PATH, {}) as response:
            content = b""
            async for chunk in response.aiter_bytes():
                content += chunk
                if len(content) > MAX_ANSWER_BYTES:
                    raise UpstreamFailed("its answer is too large")
        try:
            return orjson.loads(content)
        except ValueError as error:
            raise UpstreamFailed("its answer is not JSON") from error

    async def ask_version(self, url: str, served: SignedSnapshot) -> VersionFate:
        """Return what the upstream knows of a version; raise :class:`UpstreamFailed`.

        That is :class:`NotSupported` if it is of an older release, or doesn't accept the signature.
        """
        content = served.serialize()
        headers = {b"Content-Type": b"application/json"}
        async with self._request(url + RELAY_LOST_VERSION, headers, content) as response:
            answer = await response.aread()
        try:
            return parse_fate(orjson.loads(answer))
        except (ValueError, AttributeError) as error:
            raise UpstreamFailed("its answer about a lost version is not valid") from error

    async def events(self, url: str, headers: Mapping[bytes, bytes]) -> AsyncGenerator[Event, None]:
        """Yield the events of a relay stream until it ends; raise :class:`UpstreamFailed`."""
        parser = EventParser()
        async with self._request(url + RELAY_STREAM, headers) as response:
            async for chunk in response.aiter_bytes():
                try:
                    events = parser.feed(chunk)
                except EventTooLarge as error:
                    raise UpstreamFailed(str(error)) from error
                for event in events:
                    yield event

    @contextlib.asynccontextmanager
    async def _request(
        self, url: str, headers: Mapping[bytes, bytes], content: bytes | None = None
    ) -> AsyncIterator["httpx.Response"]:
        import httpx

        token = self._config.read_token().encode()
        authorized = {**headers, b"Authorization": b"Bearer " + token}
        try:
            method = "GET" if content is None else "POST"
            async with self._client.stream(
                method, url, headers=authorized, content=content
            ) as response:
                if content is not None and response.status_code in UNSUPPORTED:
                    raise NotSupported(f"it answers HTTP {response.status_code}")
                if response.status_code != httpx.codes.OK:
                    raise _describe_refusal(response)
                yield response
        except httpx.TimeoutException as error:
            raise UpstreamFailed(f"it does not respond ({type(error).__name__})") from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise UpstreamFailed(str(error) or type(error).__name__) from error


@contextlib.asynccontextmanager
async def connect(config: RelayConfig) -> AsyncIterator[Upstream]:
    """Yield the connections to the upstreams of `config`, which open with the first request."""
    async with await make_client(config, read_seconds=SILENCE_SECONDS) as client:
        yield Upstream(config, client)


def _describe_refusal(response: "httpx.Response") -> UpstreamFailed:
    """Return the error for a response whose status is not 200."""
    status = response.status_code
    if status in {401, 403}:
        return TokenRefused(f"it refuses the token (HTTP {status})")
    if status == 404:
        return UpstreamFailed("it serves no relays: its release is older (HTTP 404)")
    wait = response.headers.get("Retry-After", "")
    seconds = float(wait) if wait.isascii() and wait.isdigit() else 0.0
    return UpstreamFailed(f"it answers HTTP {status}", min(seconds, MAX_PAUSE_SECONDS))
