"""A middleware for ASGI applications, such as FastAPI's and Starlette's.

It limits each request to the time that the calling service still waits for the response. If a
trusted calling service retries, this service does not retry its own calls.

    app.add_middleware(Incoming, trusted_peers=("10.0.0.0/8",))
"""

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

from switchgear.adapters.middleware import BODY, CONTENT_TYPE, STATUS, TrustedPeers
from switchgear.patterns.propagation import incoming

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class Incoming:
    """ASGI middleware around `app`.

    It responds with 504 to a request that has no time left on arrival. It does not cancel running
    requests; deadlines and timeouts in the application end no later than the time limit sent by the
    calling service.

    `trusted_peers` are addresses and networks of calling services whose `X-Retry-Attempt` switches
    off the retries of this service. The addresses are matched against the connection's address as
    reported by the server; none by default.
    """

    def __init__(self, app: App, *, trusted_peers: Iterable[str] = ()) -> None:
        self.app = app
        self._peers = TrustedPeers(trusted_peers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = (
            (name.decode("latin-1"), each.decode("latin-1")) for name, each in scope["headers"]
        )
        peer = scope.get("client")
        limits = incoming(headers, trusts_attempt=self._peers.has(peer[0] if peer else None))
        if limits.is_over:
            length = str(len(BODY)).encode()
            fields = [(b"content-type", CONTENT_TYPE.encode()), (b"content-length", length)]
            await send({"type": "http.response.start", "status": STATUS, "headers": fields})
            await send({"type": "http.response.body", "body": BODY})
            return
        with limits:
            await self.app(scope, receive, send)
