"""SMTP client for one mail, with a deadline for the whole exchange.

Unlike Django's backend and :meth:`smtplib.SMTP.sendmail`, this client distinguishes a mail that was
not accepted from a mail in doubt. A mail is in doubt if the connection broke after the mail was
sent and before the server replied.
"""

import contextlib
import re
import smtplib
import socket
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from controlplane.core.egress_guard import name_resolution
from controlplane.core.egress_guard.name_resolution import Unresolved
from controlplane.notify.transports import connections
from controlplane.notify.transports.failures import PermanentFailure, TransientFailure

from .environment import EmailSettings

CONNECT_SECONDS = 3.0
READ_SECONDS = 8.0
WHOLE_SECONDS = 15.0
MAX_ADDRESSES_TRIED = 3
MAX_REPLY_LENGTH = 200

_DOT_AT_START = re.compile(rb"^\.", re.MULTILINE)


@dataclass(frozen=True)
class Envelope:
    """Sender and recipient of a mail; `international` if an address is not ASCII."""

    sender: str
    recipient: str
    international: bool


class _Connection(smtplib.SMTP):
    """An SMTP connection that is shut down at a deadline."""

    def __init__(self, server: EmailSettings, seconds: float) -> None:
        self._server = server
        self._line: socket.socket | None = None
        self._was_cut = False
        self._deadline = threading.Timer(seconds, self._cut)
        self._deadline.daemon = True
        # The short host name for EHLO, because a full name would need a DNS lookup.
        name = socket.gethostname() or "localhost"
        super().__init__(server.host, server.port, local_hostname=name, timeout=READ_SECONDS)

    def connect(
        self, host: str = "", port: int = 0, source_address: Any = None
    ) -> tuple[int, bytes]:
        self._deadline.start()
        line = _connect(host, port)
        # A second handle to shut the connection down, because TLS takes the first one over.
        self._line = line.dup()
        line.settimeout(READ_SECONDS)
        by_tls = self._server.security == "tls"
        self.sock = _tls_context().wrap_socket(line, server_hostname=host) if by_tls else line
        self.file = None
        return self.getreply()

    def getreply(self) -> tuple[int, bytes]:
        """Return the server's reply; raise if the connection was shut down at the deadline."""
        answer = super().getreply()
        if self._was_cut:
            raise smtplib.SMTPServerDisconnected("out of time")
        return answer

    def close(self) -> None:
        self._deadline.cancel()
        super().close()
        if self._line is not None:
            self._line.close()

    def _cut(self) -> None:
        self._was_cut = True
        if self._line is not None:
            with contextlib.suppress(OSError):  # Already closed.
                self._line.shutdown(socket.SHUT_RDWR)


def send_mail(
    server: EmailSettings, envelope: Envelope, mail: bytes, *, seconds: float = WHOLE_SECONDS
) -> None:
    """Send one mail to the server; raise a `DeliveryFailure` unless it was accepted."""
    connections.release_connection()
    with _convert_errors("can't connect to the mail server", where="at the greeting"):
        with_server = _Connection(server, seconds)
    try:
        _begin_mail(with_server, server, envelope)
        _transmit(with_server, mail)
    finally:
        with_server.close()


@contextlib.contextmanager
def _convert_errors(broken: str, *, where: str = "") -> Iterator[None]:
    """Context manager: raise SMTP errors as `DeliveryFailure`; `broken` is its text if cut off."""
    try:
        yield
    except smtplib.SMTPResponseException as refusal:
        raise _make_failure(refusal.smtp_code, refusal.smtp_error, where) from refusal
    except smtplib.SMTPNotSupportedError as error:
        reason = f"the mail server lacks a required feature: {_describe_error(error)}"
        raise PermanentFailure(reason) from error
    except ssl.SSLError as error:
        raise TransientFailure(
            f"the mail server's certificate was rejected: {_describe_error(error)}"
        ) from error
    except (OSError, smtplib.SMTPException) as error:
        raise TransientFailure(f"{broken} ({_describe_error(error)})") from error


def _begin_mail(connection: _Connection, server: EmailSettings, envelope: Envelope) -> None:
    """Run the SMTP exchange up to `DATA`; if it fails, the mail was certainly not delivered."""
    with _convert_errors("the mail server closed the connection"):
        connection.ehlo_or_helo_if_needed()
        if server.security == "starttls":
            connection.starttls(context=_tls_context())
            connection.ehlo()
        if server.user:
            connection.login(server.user, server.password)
        options = []
        if envelope.international:
            if not connection.has_extn("smtputf8"):
                raise PermanentFailure(
                    "the mail server doesn't accept addresses with non-ASCII characters"
                )
            options = ["SMTPUTF8", "BODY=8BITMIME"]
        _check_reply(connection.mail(envelope.sender, options), "for the sender")
        _check_reply(connection.rcpt(envelope.recipient), "for the recipient")
        _check_reply(connection.docmd("DATA"), "before the mail", expected=354)


def _transmit(connection: _Connection, mail: bytes) -> None:
    try:
        connection.send(_DOT_AT_START.sub(b"..", mail) + b".\r\n")
    except (OSError, smtplib.SMTPException) as error:
        raise TransientFailure(
            f"the mail server closed the connection ({_describe_error(error)})"
        ) from error
    doubt = TransientFailure(
        "no response after the mail was sent; it may have been delivered", in_doubt=True
    )
    try:
        answer = connection.getreply()
    except (OSError, smtplib.SMTPException) as error:
        raise doubt from error
    if not 200 <= answer[0] < 600:
        raise doubt  # An incomplete line, for example from a server that shuts down.
    _check_reply(answer, "for the mail")


def _check_reply(answer: tuple[int, bytes], where: str, *, expected: int = 250) -> None:
    code, text = answer
    if code != expected and not (expected == 250 and code == 251):
        raise _make_failure(code, text, where)


def _make_failure(code: int, text: bytes | str, where: str) -> Exception:
    """Return the failure for a reply code: transient for 4xx, else permanent (RFC 5321, 4.2.1)."""
    reply = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    reply = " ".join("".join(c if c.isprintable() else " " for c in reply).split())[
        :MAX_REPLY_LENGTH
    ]
    reason = f"the mail server returned {code} {where}".rstrip() + (f": {reply}" if reply else "")
    return TransientFailure(reason) if code < 500 else PermanentFailure(reason)


def _connect(host: str, port: int) -> socket.socket:
    try:
        addresses = name_resolution.look_up(host, port)[:MAX_ADDRESSES_TRIED]
    except Unresolved as error:
        raise TransientFailure(str(error)) from error
    for address in addresses[:-1]:
        try:
            return socket.create_connection((address, port), CONNECT_SECONDS)
        except OSError:
            continue
    return socket.create_connection((addresses[-1], port), CONNECT_SECONDS)


def _tls_context() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _describe_error(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
