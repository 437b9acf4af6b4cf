"""A mail server on a socket that takes one mail a connection, with scripted faults."""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from .certificate import certificate


@dataclass
class Mail:
    """A received mail: envelope, content without dot-stuffing, and whether it was encrypted."""

    sender: str = ""
    recipient: str = ""
    options: str = ""
    content: bytes = b""
    encrypted: bool = False
    login: str = ""


@dataclass
class FakeSmtp:
    """A mail server whose `replies` replace the usual ones, by moment.

    A reply is a reply line, `hang`, `drop`, `half` (a line) or `drip`. Moments: CONNECT, EHLO,
    STARTTLS, AUTH, MAIL, RCPT, DATA, and END after the mail.
    """

    port: int
    extensions: list[str] = field(default_factory=lambda: ["8BITMIME", "SMTPUTF8"])
    replies: dict[str, list[str]] = field(default_factory=dict)
    accepted: list[Mail] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)


@contextmanager
def fake_smtp(*, tls: bool = False) -> Iterator[FakeSmtp]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        fake = FakeSmtp(listener.getsockname()[1])
        thread = threading.Thread(target=_accept, args=(listener, fake, tls), daemon=True)
        thread.start()
        try:
            yield fake
        finally:
            fake.closing.set()
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def _accept(listener: socket.socket, fake: FakeSmtp, tls: bool) -> None:
    while not fake.closing.is_set():
        try:
            line, _ = listener.accept()
        except OSError:
            return
        session = _Session(line, fake, tls)
        threading.Thread(target=session.run, daemon=True).start()


class _Gone(Exception):
    """The session is over."""


class _Session:
    def __init__(self, line: socket.socket, fake: FakeSmtp, tls: bool) -> None:
        self.line, self.fake, self.by_tls, self.mail = line, fake, tls, Mail()

    def run(self) -> None:
        with suppress(OSError, _Gone):
            if self.by_tls:
                self._encrypt()
            self.file = self.line.makefile("rb")
            self._say("CONNECT", "220 fake ready")
            while line := self.file.readline():
                self._command(line.decode().rstrip("\r\n"))
        with suppress(OSError):
            self.line.shutdown(socket.SHUT_RDWR)  # The file on it would keep it open.
        self.line.close()

    def _command(self, line: str) -> None:
        verb, _, rest = line.partition(" ")
        match verb.upper():
            case "EHLO":
                offered = [*self.fake.extensions, "HELP"]
                lines = ["250-fake"] + [f"250-{name}" for name in offered[:-1]]
                self._say("EHLO", "\r\n".join([*lines, f"250 {offered[-1]}"]))
            case "STARTTLS":
                self._say("STARTTLS", "220 go on")
                self._encrypt()
                self.file = self.line.makefile("rb")
            case "AUTH":
                self.mail.login = rest
                self._say("AUTH", "235 welcome")
            case "MAIL":
                self.mail.sender, _, self.mail.options = rest[5:].partition(" ")
                self._say("MAIL", "250 ok")
            case "RCPT":
                self.mail.recipient = rest[3:]
                self._say("RCPT", "250 ok")
            case "DATA":
                self._take()
            case _:
                self._send("250 ok" if verb != "QUIT" else "221 bye")

    def _take(self) -> None:
        if not self._say("DATA", "354 go on").startswith("354"):
            return
        lines = []
        while (line := self.file.readline()) != b".\r\n":
            if not line:
                raise _Gone
            lines.append(line[1:] if line.startswith(b".") else line)
        self.mail.content = b"".join(lines)
        instead = self.fake.replies.get("END") or ["250"]
        if instead[0][0] not in "45":
            self.fake.accepted.append(self.mail)
        self._say("END", "250 taken")

    def _encrypt(self) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate())
        self.line = context.wrap_socket(self.line, server_side=True)
        self.mail.encrypted = True

    def _say(self, moment: str, usual: str) -> str:
        instead = self.fake.replies.get(moment)
        reply = instead.pop(0) if instead else usual
        if reply == "hang":
            self.fake.closing.wait(60)
            raise _Gone
        if reply == "drop":
            raise _Gone
        if reply == "half":
            self.line.sendall(b"25")
            raise _Gone
        if reply == "drip":
            while not self.fake.closing.wait(0.05):
                self.line.sendall(b"2")
            raise _Gone
        self._send(reply)
        return reply

    def _send(self, reply: str) -> None:
        self.line.sendall(f"{reply}\r\n".encode())
