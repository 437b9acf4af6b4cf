"""An HTTP request of an ASGI server, with methods to send the response."""

import asyncio
import contextlib
import itertools
import re
import secrets
from collections.abc import Awaitable, Callable, Iterable, MutableMapping, Sequence
from typing import Any

from controlplane.core.errors import DomainError, TooSlow
from controlplane.core.http.client_address import client_address, network_of
from controlplane.core.protocol import REQUEST_ID, max_body_bytes, too_large
from controlplane.dataplane.memory.compression import Header
from controlplane.dataplane.memory.credentials import Credential, Headers
from controlplane.dataplane.memory.served_copy import JSON

from .responses import Response

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
ASGIApplication = Callable[[Scope, Receive, Send], Awaitable[None]]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; form-action 'self'; manifest-src 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
"""Content security policy, the same as in Django's responses."""
INSTANCE = b"switchgear-instance"
NOSNIFF: Header = (b"x-content-type-options", b"nosniff")
BROWSER_HEADERS: tuple[Header, ...] = (
    NOSNIFF,
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"content-security-policy", POLICY.encode()),
)
DRAIN_BYTES = 1024 * 1024
DRAIN_SECONDS = 1.0
READ_SECONDS = 10.0
SANE_REQUEST_ID = re.compile(REQUEST_ID.pattern.encode())
PROCESS = secrets.token_hex(6).encode()
_numbers = itertools.count(1)


class Call:
    """A request: method, headers, body once read, and the credential that authorized it."""

    __slots__ = (
        "body",
        "cors_headers",
        "credential",
        "headers",
        "held",
        "method",
        "receive",
        "scope",
        "send",
        "status",
        "time_headers",
    )

    def __init__(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        time_headers: Callable[[], Iterable[Header]] = tuple,
    ) -> None:
        self.scope = scope
        self.method: str = scope["method"]
        self.headers: Headers = dict(scope["headers"])
        self.receive = receive
        self.body = b""
        self.cors_headers: tuple[Header, ...] = ()
        self.credential: Credential | None = None
        self.held = False
        """True if the request was held for a change, so its duration doesn't count as latency."""
        self.status = 0
        """Status of the response once it has begun; 0 before."""
        self.send = send
        self.time_headers = time_headers

    def forget_instance(self) -> None:
        """Treat the request as that of a caller without the name of an instance."""
        self.headers = {name: self.headers[name] for name in self.headers if name != INSTANCE}

    async def respond(self, response: Response) -> None:
        """Send a complete response; only its headers for HEAD."""
        status, headers, body = response
        await self.send(self._start(status, headers))
        await self.send(
            {"type": "http.response.body", "body": b"" if self.method == "HEAD" else body}
        )

    async def start_response(self, status: int, headers: Sequence[Header]) -> None:
        """Send status and headers, with the time and the request id added."""
        await self.send(self._start(status, headers))

    def _start(self, status: int, headers: Sequence[Header]) -> Message:
        self.status = status
        request_id = self.headers.get(b"x-request-id")
        if request_id is None or not SANE_REQUEST_ID.fullmatch(request_id):
            request_id = b"%s-%x" % (PROCESS, next(_numbers))
        all_headers = [
            *headers,
            *self.cors_headers,
            *self.time_headers(),
            (b"x-request-id", request_id),
        ]
        if status != 304:  # The caller's cached response has them.
            # Browsers don't render JSON, and headers are costly for a poll.
            present = {name for name, _ in headers}  # A page may have a policy of its own.
            more = (NOSNIFF,) if JSON in headers else BROWSER_HEADERS
            all_headers += [header for header in more if header[0] not in present]
        return {"type": "http.response.start", "status": status, "headers": all_headers}

    async def send_part(self, body: bytes) -> None:
        await self.send({"type": "http.response.body", "body": body, "more_body": True})

    async def send_end(self) -> None:
        await self.send({"type": "http.response.body", "body": b""})

    async def read_body(self) -> None:
        """Read the whole body; raise :class:`TooLarge` or :class:`TooSlow`."""
        try:
            async with asyncio.timeout(READ_SECONDS):
                await self._receive_body()
        except TimeoutError:
            raise TooSlow(f"The body did not arrive within {READ_SECONDS:g} seconds.") from None

    async def _receive_body(self) -> None:
        largest = max_body_bytes(self.scope["path"])
        while True:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise incomplete_body()
            self.body += bytes(message.get("body", b""))
            if len(self.body) > largest:
                break
            if not message.get("more_body"):
                return
        if message.get("more_body"):
            await drain_body(self.receive)
        raise too_large(largest)


def client_network(scope: Scope, proxies: Iterable[str]) -> str:
    """Return the network that counts as one client; see :func:`client_address`."""
    peer = (scope.get("client") or ("",))[0]
    forwarded = [value for name, value in scope["headers"] if name == b"x-forwarded-for"]
    return network_of(client_address(peer, b",".join(forwarded).decode("latin-1"), proxies))


def incomplete_body() -> DomainError:
    """Return the error for a request body that ended early.

    Servers report a disconnect and a malformed chunk in the same way. A client that sent a
    malformed chunk can still read the response.
    """
    return DomainError("The request's body is malformed or incomplete.")


async def drain_body(receive: Receive) -> None:
    """Discard the rest of the body, within limits, so that the client reads the response."""
    drained = 0
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(DRAIN_SECONDS):
            while drained < DRAIN_BYTES:
                message = await receive()
                drained += len(message.get("body", b""))
                if not message.get("more_body"):
                    return
