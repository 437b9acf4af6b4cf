"""Errors of requests to the console, with messages that are safe to log."""

import http.client
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


def describe_error(error: BaseException) -> str:
    """Return a short description of a network error, without text sent by the server."""
    if isinstance(error, SocketError):
        return str(error)
    if isinstance(error, TimeoutError):
        return "it does not answer in time"
    if isinstance(error, socket.gaierror):
        return "its name can't be resolved"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is refused: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"TLS fails: {error.reason or type(error).__name__}"
    if isinstance(error, ConnectionRefusedError):
        return "it refuses connections"
    if isinstance(error, http.client.RemoteDisconnected | ConnectionError):
        return "it ended the connection"
    if isinstance(error, OSError):
        return f"it can't be reached: {error.strerror or type(error).__name__}"
    if isinstance(error, zlib.error):
        return "its compressed answer is damaged"
    return f"its answer is no HTTP: {type(error).__name__}"
