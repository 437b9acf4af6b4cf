"""Requests of a relay that exchange emergency orders with one of its upstreams."""

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING

from controlplane.core.environment_variables import WrongVariable
from controlplane.core.protocol import RELAY_ORDERS
from controlplane.dataplane.config import RelayConfig
from controlplane.dataplane.emergency.exchange_messages import (
    MAX_REPLY_BYTES,
    ExchangeReply,
    ExchangeRequest,
    InvalidMessage,
)
from controlplane.dataplane.emergency.peer_transport import (
    REQUEST_SECONDS,
    ExchangeUnsupported,
    PeerFailed,
)
from switches.emergency.orders import Order

from .order_format import write_order

if TYPE_CHECKING:
    import httpx

CONNECT_SECONDS = 3.0
"""Includes the TLS handshake with another continent."""
KEEPALIVE_SECONDS = 60.0


class UpstreamTransport:
    """Sends messages to the upstream at `base_url`, with the relay's token."""

    def __init__(self, config: RelayConfig, base_url: str, client: "httpx.AsyncClient") -> None:
        self.addresses: tuple[str, ...] = ()
        self._config = config
        self._url = base_url
        self._client = client

    @property
    def url(self) -> str:
        return self._url

    def accepts(self, order: Order) -> bool:
        """Return True for orders that a relay has signed: upstreams refuse others."""
        return order.relay is not None

    def write(self, order: Order) -> str:
        return write_order(order)

    async def send(self, request: ExchangeRequest) -> ExchangeReply:
        import httpx

        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                status, content = await self._post(request.serialize())
        except (httpx.TimeoutException, TimeoutError) as error:
            raise PeerFailed(f"no answer within {REQUEST_SECONDS:g} s") from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise PeerFailed(str(error) or type(error).__name__) from error
        except WrongVariable as error:
            raise PeerFailed(f"there is no token to send: {error}") from error
        if status in (404, 405):
            raise ExchangeUnsupported("it is of an older version, which serves no relays")
        if status in (401, 403):
            raise PeerFailed(f"it refuses the token (HTTP {status})")
        if status != httpx.codes.OK:
            raise PeerFailed(f"it answered with status {status}")
        try:
            return ExchangeReply.parse(content)
        except InvalidMessage as error:
            raise PeerFailed(f"its answer is not valid: {error}") from error

    async def _post(self, body: bytes) -> tuple[int, bytes]:
        """Return status and body of the response."""
        headers = {
            "Authorization": f"Bearer {self._config.read_token()}",
            "Content-Type": "application/json",
            "Accept-Encoding": "identity",
        }
        url = self._url.rstrip("/") + RELAY_ORDERS
        async with self._client.stream("POST", url, content=body, headers=headers) as response:
            content = b""
            async for chunk in response.aiter_raw():
                content += chunk
                if len(content) > MAX_REPLY_BYTES:
                    raise PeerFailed("its answer is too large")
            return response.status_code, content


async def make_client(
    config: RelayConfig, read_seconds: float = REQUEST_SECONDS
) -> "httpx.AsyncClient":
    """Return the connections to all upstreams, which are opened when they are needed."""
    # In a thread, because the first import takes long and would block the event loop.
    await asyncio.to_thread(import_module, "httpx")
    import httpx

    is_tls = any(url.startswith("https:") for url in config.upstreams)
    context = await asyncio.to_thread(httpx.create_ssl_context) if is_tls else False
    return httpx.AsyncClient(
        verify=context,
        trust_env=False,
        follow_redirects=False,
        timeout=httpx.Timeout(read_seconds, connect=CONNECT_SECONDS),
        limits=httpx.Limits(keepalive_expiry=KEEPALIVE_SECONDS),
    )
