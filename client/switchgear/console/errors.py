"""Errors of requests to the console, with messages that are safe to log."""

import socket
import ssl
import zlib


class RequestFailed(Exception):
    """Raised if a request got no usable answer.

    `why` is a short reason without secrets. `status` is the status of the answer, None without an
    answer. `retry_after` is the `Retry-After` header of the answer.
    """

    def __init__(self, why: str, retry_after: str | None = None, status: int | None = None) -> None:
        super().__init__(why)
        self.why = why
        self.retry_after = retry_after
        self.status = status


class SocketError(OSError):
    """Raised if the connection can't be used; the message is safe to log."""


_DESCRIPTIONS: tuple[tuple[type[BaseException], str], ...] = (
    (SocketError, "{error}"),
    (TimeoutError, "no response in time"),
    (socket.gaierror, "its host name can't be resolved"),
    (ssl.SSLCertVerificationError, "certificate rejected: {error.verify_message}"),
    (ssl.SSLError, "TLS error: {reason}"),
    (ConnectionRefusedError, "connection refused"),
    (ConnectionError, "connection closed by the server"),  # RemoteDisconnected, too.
    (OSError, "network error: {reason}"),
    (zlib.error, "damaged compressed response"),
    (BaseException, "not an HTTP response: {reason}"),
)
"""Descriptions by error class; the first class that matches applies."""


def describe_error(error: BaseException) -> str:
    """Return a short description of a network error, without text sent by the server."""
    text = next(text for kind, text in _DESCRIPTIONS if isinstance(error, kind))
    detail = getattr(error, "reason" if isinstance(error, ssl.SSLError) else "strerror", None)
    return text.format(error=error, reason=detail or type(error).__name__)
