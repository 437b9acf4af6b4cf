"""SMTP client for one mail, with a deadline for the whole exchange and a definite result.

A server that accepted the mail is responsible for it. If the connection breaks between the end of
the mail and the reply, delivery is in doubt; before that, nothing was accepted.
"""

import re
import smtplib
import socket
import ssl
import threading
from dataclasses import dataclass
from typing import Any

from controlplane.core.egress_guard import name_resolution
from controlplane.core.egress_guard.name_resolution import Unresolved
from controlplane.notify.transports import connections
from controlplane.notify.transports.failures import PermanentFailure, TransientFailure

CONNECT_SECONDS = 3.0
READ_SECONDS = 8.0
WHOLE_SECONDS = 15.0
MAX_ADDRESSES_TRIED = 3
MAX_REPLY_LENGTH = 200

_DOT_AT_START = re.compile(rb"^\.", re.MULTILINE)


@dataclass(frozen=True)
class Server:
    """A mail server; `security` is "" (plain text), "starttls" or "tls"."""

    host: str
    port: int
    user: str
    password: str
    security: str


@dataclass(frozen=True)
class Envelope:
    """Sender and recipient of a mail; `international` if one of the addresses is not ASCII."""

    sender: str
    recipient: str
    international: bool


class _Connection(smtplib.SMTP):
    """An SMTP connection that is closed at a deadline, whatever the server does."""

    def __init__(self, server: Server, seconds: float) -> None:
        self._server = server
        self._line: socket.socket | None = None
        self._was_cut = False
        self._deadline = threading.Timer(seconds, self._cut)
        self._deadline.daemon = True
        super().__init__(server.host, server.port, local_hostname=_own_name(), timeout=READ_SECONDS)

    def connect(
        self, host: str = "", port: int = 0, source_address: Any = None
    ) -> tuple[int, bytes]:
        self._deadline.start()
        line = _connected(host, port)
        # A second handle to shut the connection down, because TLS takes the first one over.
        self._line = line.dup()
        line.settimeout(READ_SECONDS)
        self.sock = _trust().wrap_socket(line, server_hostname=host) if self._by_tls else line
        self.file = None
        return self.getreply()

    def getreply(self) -> tuple[int, bytes]:
        """Return the server's reply; raise if the deadline cut it off, as it may be incomplete."""
        answer = super().getreply()
        if self._was_cut:
            raise smtplib.SMTPServerDisconnected("out of time")
        return answer

    def close(self) -> None:
        self._deadline.cancel()
        super().close()
        if self._line is not None:
            self._line.close()

    @property
    def _by_tls(self) -> bool:
        return self._server.security == "tls"

    def _cut(self) -> None:
        self._was_cut = True
        if self._line is not None:
            try:
                self._line.shutdown(socket.SHUT_RDWR)
            except OSError:
                return  # Already closed.


def hand_in(
    server: Server, envelope: Envelope, mail: bytes, *, seconds: float = WHOLE_SECONDS
) -> None:
    """Send one mail to the server; raises a `DeliveryFailure`."""
    connections.let_go()
    try:
        with_server = _Connection(server, seconds)
    except smtplib.SMTPResponseException as refusal:
        raise _failure(refusal.smtp_code, refusal.smtp_error, "at the greeting") from refusal
    except ssl.SSLError as error:
        raise TransientFailure(f"no trust in the mail server: {_why(error)}") from error
    except (OSError, smtplib.SMTPException) as error:
        raise TransientFailure(f"no connection to the mail server ({_why(error)})") from error
    try:
        _prepare(with_server, server, envelope)
        _deliver(with_server, mail)
    finally:
        with_server.close()


def _prepare(connection: _Connection, server: Server, envelope: Envelope) -> None:
    """Run the exchange up to the mail itself; failures here leave nothing in doubt."""
    try:
        connection.ehlo_or_helo_if_needed()
        if server.security == "starttls":
            connection.starttls(context=_trust())
            connection.ehlo()
        if server.user:
            connection.login(server.user, server.password)
        options = _options(connection, envelope)
        _expect(connection.mail(envelope.sender, options), "for the sender")
        _expect(connection.rcpt(envelope.recipient), "for the recipient")
        _expect(connection.docmd("DATA"), "before the mail", wanted=354)
    except smtplib.SMTPResponseException as refusal:
        raise _failure(refusal.smtp_code, refusal.smtp_error, "") from refusal
    except smtplib.SMTPNotSupportedError as error:
        raise PermanentFailure(f"the mail server lacks what is needed: {_why(error)}") from error
    except ssl.SSLError as error:
        raise TransientFailure(f"no trust in the mail server: {_why(error)}") from error
    except (OSError, smtplib.SMTPException) as error:
        raise TransientFailure(f"the mail server went away ({_why(error)})") from error


def _deliver(connection: _Connection, mail: bytes) -> None:
    try:
        connection.send(_DOT_AT_START.sub(b"..", mail) + b".\r\n")
    except (OSError, smtplib.SMTPException) as error:
        raise TransientFailure(f"the mail server went away ({_why(error)})") from error
    doubt = TransientFailure("no answer after the mail; it may have arrived", in_doubt=True)
    try:
        answer = connection.getreply()
    except (OSError, smtplib.SMTPException) as error:
        raise doubt from error
    if not 200 <= answer[0] < 600:
        raise doubt  # An incomplete line, for example from a server that shuts down.
    _expect(answer, "for the mail")


def _options(connection: _Connection, envelope: Envelope) -> list[str]:
    if not envelope.international:
        return []
    if not connection.has_extn("smtputf8"):
        raise PermanentFailure("the mail server takes no addresses with letters beyond ASCII")
    return ["SMTPUTF8", "BODY=8BITMIME"]


def _expect(answer: tuple[int, bytes], where: str, *, wanted: int = 250) -> None:
    code, text = answer
    if code != wanted and not (wanted == 250 and code == 251):
        raise _failure(code, text, where)


def _failure(code: int, text: bytes | str, where: str) -> Exception:
    """Return the failure for a reply code: 4xx is transient, others permanent (RFC 5321, 4.2.1)."""
    said = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    said = " ".join("".join(c if c.isprintable() else " " for c in said).split())[:MAX_REPLY_LENGTH]
    reason = f"the mail server says {code} {where}".rstrip() + (f": {said}" if said else "")
    return TransientFailure(reason) if code < 500 else PermanentFailure(reason)


def _connected(host: str, port: int) -> socket.socket:
    addresses = _looked_up(host, port)[:MAX_ADDRESSES_TRIED]
    for address in addresses[:-1]:
        try:
            return socket.create_connection((address, port), CONNECT_SECONDS)
        except OSError:
            continue
    return socket.create_connection((addresses[-1], port), CONNECT_SECONDS)


def _looked_up(host: str, port: int) -> list[str]:
    try:
        return name_resolution.look_up(host, port)
    except Unresolved as error:
        raise TransientFailure(str(error)) from error


def _trust() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _own_name() -> str:
    """Return the host name for EHLO.

    Not the fully qualified one, because looking it up has no time limit.
    """
    return socket.gethostname() or "localhost"


def _why(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
