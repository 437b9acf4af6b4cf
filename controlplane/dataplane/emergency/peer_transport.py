"""Signed requests to another data plane, at the addresses of its URL.

Each wait has a deadline and each answer a maximum size, so that a data plane that hangs or sends
invalid data does not delay the exchange with others.
"""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import orjson

from controlplane.core.protocol import EXCHANGE
from controlplane.dataplane.storage.order_journal import SIGNED_ORDER
from switches.emergency.orders import Order

from . import exchange_messages as messages
from .exchange_messages import (
    HEADER,
    MAX_REPLY_BYTES,
    REPLY,
    REQUEST,
    ExchangeReply,
    ExchangeRequest,
    InvalidMessage,
    PeerKeys,
    Stamp,
)

if TYPE_CHECKING:
    import httpx

CONNECT_SECONDS = 1.0
REQUEST_SECONDS = 4.0


class PeerFailed(Exception):
    """An exchange that failed; the text is the reason, for the log."""


class ExchangeUnsupported(PeerFailed):
    """Raised if the data plane is of an older version, which exchanges no orders."""


class Signer(Protocol):
    """Keys and clock that sign messages."""

    keys: Sequence[PeerKeys]

    def unix(self) -> float:
        """Return UNIX seconds."""


class SignedTransport:
    """Sends messages to a data plane that has the same `SECRET_KEY`.

    `addresses` are tried in turn: those of the URL's host.
    """

    def __init__(self, signer: Signer, url: "httpx.URL", client: "httpx.AsyncClient") -> None:
        self.addresses: tuple[str, ...] = ()
        self._signer = signer
        self._url = url
        self._client = client
        self._address_index = 0
        self._clock_offset_seconds = 0.0
        """Seconds by which the peer's clock is ahead."""
        self._key_index = 0

    @property
    def url(self) -> str:
        return str(self._url)

    def accepts(self, _order: Order) -> bool:
        return True

    def write(self, order: Order) -> str:
        return SIGNED_ORDER.sign(order, self._keys().order).decode()

    async def send(self, request: ExchangeRequest) -> ExchangeReply:
        """Send a request, and return the verified reply; raise :class:`PeerFailed`."""
        body = request.serialize()
        for _ in range(len(self._signer.keys) + 2):
            keys, nonce = self._keys(), messages.make_nonce()
            at = self._signer.unix() + self._clock_offset_seconds
            stamp = Stamp.make(REQUEST, body, keys.message, at=at, nonce=nonce)
            status, header, content = await self._post(body, stamp.header)
            if status in (404, 405):
                raise ExchangeUnsupported(
                    "it is of an older version, which exchanges no emergency orders"
                )
            if status == 401:
                self._adapt(content, nonce)
                continue
            if status != 200:
                raise PeerFailed(f"it answered with status {status}")
            return _read_reply(header, content, nonce, keys)
        raise PeerFailed("it refuses the signature; both need the same SECRET_KEY")

    def _adapt(self, content: bytes, nonce: bytes) -> None:
        """Correct the time by which the peer's clock differs, or sign with the next key."""
        try:
            stamp = Stamp.parse(str(orjson.loads(content)["stamp"]).encode())
        except (InvalidMessage, orjson.JSONDecodeError, LookupError, TypeError):
            stamp = None
        if stamp and stamp.repeats(nonce) and stamp.find_key(REPLY, [self._keys()]):
            self._clock_offset_seconds = stamp.at - self._signer.unix()
        else:
            self._key_index += 1

    async def _post(self, body: bytes, header: bytes) -> tuple[int, bytes, bytes]:
        """Return status, signature header and body of the response."""
        import httpx

        if not self.addresses:
            raise PeerFailed("the name of its host can't be resolved")
        address = self.addresses[self._address_index % len(self.addresses)]
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                try:
                    return await self._stream(address, body, header)
                except (httpx.NetworkError, httpx.RemoteProtocolError) as error:
                    if isinstance(error, httpx.ConnectError):
                        raise
                    # The peer may have closed an idle connection just now.
                    return await self._stream(address, body, header)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            self._address_index += 1
            raise PeerFailed(f"no connection ({type(error).__name__})") from error
        except (httpx.TimeoutException, TimeoutError) as error:
            raise PeerFailed(f"no answer within {REQUEST_SECONDS:g} s") from error
        except httpx.HTTPError as error:
            raise PeerFailed(f"the connection broke ({type(error).__name__})") from error

    async def _stream(self, address: str, body: bytes, header: bytes) -> tuple[int, bytes, bytes]:
        host = self._url.raw_host.decode("ascii")
        url = self._url.copy_with(host=address, path=EXCHANGE)
        headers = {
            "Host": self._url.netloc.decode("ascii"),
            "Content-Type": "application/json",
            "Accept-Encoding": "identity",
            HEADER: header.decode(),
        }
        async with self._client.stream(
            "POST", url, content=body, headers=headers, extensions={"sni_hostname": host}
        ) as response:
            content = b""
            async for chunk in response.aiter_raw():
                content += chunk
                if len(content) > MAX_REPLY_BYTES:
                    raise PeerFailed("its answer is too large")
            return response.status_code, response.headers.get(HEADER, "").encode(), content

    def _keys(self) -> PeerKeys:
        return self._signer.keys[self._key_index % len(self._signer.keys)]


def _read_reply(header: bytes, content: bytes, nonce: bytes, keys: PeerKeys) -> ExchangeReply:
    try:
        stamp = Stamp.parse(header)
        is_signed = stamp.repeats(nonce) and stamp.find_key(REPLY, [keys])
        if not is_signed or not stamp.covers(content):
            raise InvalidMessage("its signature does not fit")
        return ExchangeReply.parse(content)
    except InvalidMessage as error:
        raise PeerFailed(f"its answer is not valid: {error}") from error
