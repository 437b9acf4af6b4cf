"""A middleware for WSGI applications, such as Django's and Flask's.

It limits each request to the time that the calling service still waits for the response. If a
trusted calling service retries, this service does not retry its own calls.

    application = Incoming(get_wsgi_application(), trusted_peers=("10.0.0.0/8",))
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from switchgear.adapters.middleware import BODY, CONTENT_TYPE, LINE, TrustedPeers
from switchgear.patterns import propagation

Environ = dict[str, Any]
StartResponse = Callable[..., Any]
App = Callable[[Environ, StartResponse], Iterable[bytes]]


class Incoming:
    """WSGI middleware around `app`.

    It responds with 504 to a request that has no time left on arrival, and does not cancel running
    requests. The time limit of the request also applies while the response is streamed.

    `trusted_peers` are addresses and networks of calling services whose `X-Retry-Attempt` switches
    off the retries of this service, matched against `REMOTE_ADDR`; none by default.
    """

    def __init__(self, app: App, *, trusted_peers: Iterable[str] = ()) -> None:
        self.app = app
        self._peers = TrustedPeers(trusted_peers)

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        trusts = self._peers.has(environ.get("REMOTE_ADDR"))
        limits = propagation.incoming(_headers(environ), trusts_attempt=trusts)
        if limits.is_over:
            headers = [("Content-Type", CONTENT_TYPE), ("Content-Length", str(len(BODY)))]
            start_response(LINE, headers)
            return [BODY]
        with limits:
            body = self.app(environ, start_response)
        return body if isinstance(body, list | tuple) else _Body(body, limits)


class _Body:
    def __init__(self, body: Iterable[bytes], limits: propagation.IncomingRequest) -> None:
        self._body = body
        self._limits = limits
        self._bits: Iterator[bytes] | None = None

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        with self._limits:
            if self._bits is None:
                self._bits = iter(self._body)
            return next(self._bits)

    def close(self) -> None:
        """Close the application's response. Servers always call this at the end."""
        close = getattr(self._body, "close", None)
        if close is not None:
            with self._limits:
                close()


def _headers(environ: Environ) -> Iterator[tuple[str, str]]:
    for name, value in environ.items():
        if name.startswith("HTTP_"):
            yield name[5:].replace("_", "-"), value
