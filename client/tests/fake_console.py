"""A console for tests: honest until it is told to lie. A real HTTP server on a port of its own.

    with console() as there:
        there.engage("feature:chat")
        there.lie = garbage

        there.configure("core->oracle", timeout_ms=500)
        there.override("core->oracle", "forced_open")

`lie` takes the place of all that is said about the snapshot, `stream_lie` and `held_lie` only of
the stream and of polls that are held; `report_lie` and `config_lie` are for reports and policies.
Each is called with an :class:`Exchange`, for who asks from then on; `cut()` ends what goes on.
"""

import contextlib
import email.utils
import hashlib
import json
import re
import socket
import socketserver
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

from controlplane.core.signatures import SigningKey, sign

TOKEN = "sg_test_0123456789abcdef"
SNAPSHOT, STREAM, REPORT = "/api/v1/snapshot", "/api/v1/snapshot/stream", "/api/v1/report"
CONFIG = "/api/v1/config"


@dataclass(frozen=True)
class Asked:
    """A request as it came; names of `headers` in lower case, `at` on the monotonic clock."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    at: float


class Gone(Exception):
    """The console ends, or whoever asked has hung up."""


@dataclass
class Exchange:
    """A request, and its answer. Raises :class:`Gone` if that can't be sent."""

    console: "Console"
    asked: Asked
    connection: socket.socket

    def send(self, data: bytes) -> None:
        if self.console.closing.is_set():
            raise Gone
        try:
            self.connection.sendall(data)
        except OSError:
            raise Gone from None

    def head(self, status: int = 200, **headers: str) -> None:
        """The headers; a name with underscores stands for one with hyphens, None for none."""
        date = email.utils.formatdate(time.time() + self.console.ahead_seconds, usegmt=True)
        said: dict[str, str | None] = {"date": date if self.console.dates else None, **headers}
        lines = [f"HTTP/1.1 {status} Said"]
        lines += [f"{k.replace('_', '-')}: {v}" for k, v in said.items() if v is not None]
        self.send("\r\n".join([*lines, "", ""]).encode())

    def reply(self, status: int = 200, body: bytes = b"", **headers: str) -> None:
        self.head(status, **{"content_length": str(len(body)), **headers})
        self.send(body)

    def rest(self, seconds: float) -> None:
        """Wait; raises :class:`Gone` if the console ends meanwhile, or lets everybody go."""
        cuts = self.console.cuts
        for _ in range(max(1, round(seconds / 0.02))):
            if self.console.closing.wait(0.02) or self.console.cuts != cuts:
                raise Gone


Lie = Callable[[Exchange], None]


@dataclass
class Console:
    """The state of a fake console.

    `entries` are by switch id, in `version` of `epoch`; `dependencies` by name, in
    `config_version`.
    """

    epoch: str = field(default_factory=lambda: str(uuid.uuid4()))
    version: int = 1
    published_at: float = field(default_factory=time.time)
    """By the console's own clock."""
    entries: dict[str, dict[str, Any]] = field(default_factory=dict)
    open_orders: tuple[str, ...] = ()
    closed_orders: tuple[str, ...] = ()
    dependencies: dict[str, dict[str, Any]] = field(default_factory=dict)
    config_version: int = 1
    poll_seconds: float = 1
    comment_seconds: float = 0.1
    """Longest silence of its streams."""
    lie: Lie | None = None
    stream_lie: Lie | None = None
    held_lie: Lie | None = None
    report_lie: Lie | None = None
    config_lie: Lie | None = None
    dates: bool = True
    ahead_seconds: float = 0.0
    """How far its clock is ahead."""
    signing_keys: tuple[SigningKey, ...] = ()
    """Keys that sign the published snapshot; without any, it is not signed."""
    asked: list[Asked] = field(default_factory=list)
    cuts: int = 0
    port: int = 0
    closing: threading.Event = field(default_factory=threading.Event)
    changed: threading.Condition = field(default_factory=threading.Condition)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def document(self) -> bytes:
        if self.signing_keys and self.open_orders:
            return self._render(self.entries, self.open_orders, self.published.decode())
        return self._render(self.entries, self.open_orders)

    @property
    def published(self) -> bytes:
        """The document without emergency orders, which is what is signed."""
        return self._render({k: v for k, v in self.entries.items() if "emergency" not in v}, ())

    @property
    def signature(self) -> str:
        return sign(self.published, self.signing_keys)

    def _render(
        self, entries: dict[str, dict[str, Any]], opened: tuple[str, ...], signed: str | None = None
    ) -> bytes:
        published = datetime.fromtimestamp(self.published_at, UTC)
        return document(
            *(self.epoch, self.version, entries, self.poll_seconds, published.isoformat()),
            orders=(opened, self.closed_orders),
            signed=signed,
        )

    @property
    def etag(self) -> str:
        return f'"{self.epoch}.{self.version}{self._suffix}"'

    @property
    def _suffix(self) -> str:
        digest = hashlib.sha256(",".join(sorted(self.open_orders)).encode())
        return f"-{digest.hexdigest()[:8]}" if self.open_orders else ""

    def is_known(self, tags: str) -> bool:
        """A client that sends `tags` has this snapshot, or a newer one with the same orders."""
        marks = re.findall(r'"([0-9a-f-]+)\.([0-9]+)(-[0-9a-f]{8})?"', tags)
        return any(
            (epoch, suffix) == (self.epoch, self._suffix) and int(version) >= self.version
            for epoch, version, suffix in marks
        )

    @property
    def config_etag(self) -> str:
        return f'"{self.epoch}.c{self.config_version}"'

    @property
    def reports(self) -> list[dict[str, Any]]:
        """The bodies of the reports so far."""
        return [json.loads(one.body) for one in list(self.asked) if one.path == REPORT]

    def engage(self, switch: str, **fields: Any) -> None:
        """`fields` are the entry's: `reason`, `expires_at`, `state`, `allow_percent` and so on."""
        self._publish({**self.entries, switch: entry(switch, **fields)})

    def order(self, switch: str, order: str) -> None:
        """An emergency order, with which the version stays the same."""
        with self.changed:
            self.entries = {**self.entries, switch: entry(switch, emergency=order)}
            self.open_orders = (*self.open_orders, order)
            self.changed.notify_all()

    def close_order(self, switch: str, order: str) -> None:
        with self.changed:
            self.entries = {k: v for k, v in self.entries.items() if k != switch}
            self.open_orders = tuple(each for each in self.open_orders if each != order)
            self.closed_orders = (*self.closed_orders, order)
            self.changed.notify_all()

    def release(self, switch: str) -> None:
        self._publish({k: v for k, v in self.entries.items() if k != switch})

    def configure(self, dependency: str, **fields: Any) -> None:
        """`fields` are the policy's: `timeout_ms`, `breaker`, `override` and so on."""
        before = self.dependencies.get(dependency, {"override": None})
        with self.changed:
            self.dependencies = {**self.dependencies, dependency: {**before, **fields}}
            self.config_version += 1
            self.changed.notify_all()

    def override(
        self, dependency: str, mode: str, *, seconds: float = 3600.0, reason: str = "a test"
    ) -> None:
        """Engage a switch that expires after some seconds of this console's clock."""
        ends_at = datetime.fromtimestamp(time.time() + self.ahead_seconds + seconds, UTC)
        said = {"mode": mode, "reason": reason, "expires_at": ends_at.isoformat()}
        self.configure(dependency, override={**said, "version": self.config_version + 1})

    def lift(self, dependency: str) -> None:
        """End the override."""
        self.configure(dependency, override=None)

    def restart(self) -> None:
        """A new epoch, as after a backup was restored."""
        self.epoch = str(uuid.uuid4())
        self.cut()

    def cut(self) -> None:
        """End what goes on with everybody."""
        with self.changed:
            self.cuts += 1
            self.changed.notify_all()

    def requests_for(self, path: str) -> list[Asked]:
        """The requests for it so far."""
        return [one for one in list(self.asked) if one.path == path]

    def _publish(self, entries: dict[str, dict[str, Any]]) -> None:
        with self.changed:
            self.entries = entries
            self.version += 1
            self.published_at = time.time() + self.ahead_seconds
            self.changed.notify_all()

    def answer(self, exchange: Exchange) -> None:
        asked = exchange.asked
        if asked.path == REPORT:
            (self.report_lie or honest_report)(exchange)
        elif asked.headers.get("authorization") != f"Bearer {TOKEN}":
            exchange.reply(401)
        elif asked.path == STREAM:
            (self.stream_lie or self.lie or honest_stream)(exchange)
        elif asked.path == SNAPSHOT and "wait" in asked.query:
            (self.held_lie or self.lie or honest_held)(exchange)
        elif asked.path == SNAPSHOT:
            (self.lie or honest)(exchange)
        elif asked.path == CONFIG:
            (self.config_lie or honest_config)(exchange)
        else:
            exchange.reply(404)


def entry(switch: str, **fields: Any) -> dict[str, Any]:
    scope, _colon, key = switch.partition(":")
    told = {
        "id": switch,
        "scope": scope,
        "key": key,
        "state": "engaged",
        "allow_percent": 0,
        "salt": "salt",
        "reason": "a test has engaged it",
        "engaged_at": "2026-11-22T03:00:00.000000Z",
        "expires_at": None,
        "on_expiry": "hold",
    }
    return {**told, **fields}


def document(
    epoch: str,
    version: int,
    entries: dict[str, dict[str, Any]],
    poll_seconds: float = 1,
    published_at: str = "2026-11-22T03:00:00.000000Z",
    orders: tuple[tuple[str, ...], tuple[str, ...]] = ((), ()),
    signed: str | None = None,
) -> bytes:
    said = {
        "schema": 1,
        "epoch": epoch,
        "version": version,
        "published_at": published_at,
        "poll_seconds": poll_seconds,
        "switches": [entries[switch] for switch in sorted(entries)],
        "emergency": {"open": orders[0], "closed": orders[1]},
        **({} if signed is None else {"signed": signed}),
    }
    return json.dumps(said, separators=(",", ":"), sort_keys=True).encode()


def honest(exchange: Exchange, **headers: str) -> None:
    there = exchange.console
    tags = exchange.asked.headers.get("if-none-match", "")
    if tags == "*" or there.is_known(tags):
        exchange.head(304, etag=there.etag, **headers)
    else:
        headers = {"content_type": "application/json", **headers}
        if there.signature:
            headers["switchgear_signature"] = there.signature
        exchange.reply(200, there.document, etag=there.etag, **headers)


def honest_held(exchange: Exchange) -> None:
    there, cuts = exchange.console, exchange.console.cuts
    until = time.monotonic() + float(exchange.asked.query["wait"])
    with there.changed:
        while there.is_known(exchange.asked.headers.get("if-none-match", "")):
            if there.cuts != cuts:
                raise Gone
            if time.monotonic() > until:
                break
            there.changed.wait(0.1)
    honest(exchange)


def honest_stream(exchange: Exchange) -> None:
    there, cuts = exchange.console, exchange.console.cuts
    exchange.head(content_type="text/event-stream; charset=utf-8", transfer_encoding="chunked")
    exchange.send(chunk(b"retry: 500\n\n"))
    sent = exchange.asked.headers.get("last-event-id")
    if there.is_known(f'"{sent}"'):
        sent = there.etag.strip('"')
    said_at = time.monotonic()
    while there.cuts == cuts:
        with there.changed:
            if sent == there.etag.strip('"'):
                there.changed.wait(there.comment_seconds)
            new, body = there.etag.strip('"'), there.document
            signature = f"signature: {there.signature}\n" if there.signature else ""
        if new != sent:
            head = f"id: {new}\nevent: snapshot\n{signature}data: "
            exchange.send(chunk(head.encode() + body + b"\n\n"))
        elif time.monotonic() - said_at >= there.comment_seconds:
            exchange.send(chunk(b": nothing new\n\n"))
        else:
            continue
        sent, said_at = new, time.monotonic()
    raise Gone


def honest_config(exchange: Exchange) -> None:
    there, cuts = exchange.console, exchange.console.cuts
    until = time.monotonic() + float(exchange.asked.query.get("wait", "0"))
    with there.changed:
        while exchange.asked.headers.get("if-none-match") == there.config_etag:
            if there.cuts != cuts:
                raise Gone
            if time.monotonic() > until:
                exchange.head(304, etag=there.config_etag)
                return
            there.changed.wait(0.1)
        caller, etag = exchange.asked.query["service"], there.config_etag
        body = policies(caller, there.config_version, there.dependencies)
    exchange.reply(200, body, etag=etag, content_type="application/json")


def policies(caller: str, version: int, dependencies: dict[str, dict[str, Any]]) -> bytes:
    own = {name: one for name, one in dependencies.items() if name.startswith(f"{caller}->")}
    return json.dumps({"service": caller, "version": version, "dependencies": own}).encode()


def honest_report(exchange: Exchange) -> None:
    if exchange.asked.headers.get("authorization") != f"Bearer {TOKEN}":
        exchange.reply(401)
        return
    said = {"accepted": True, "duplicate": False, "snapshot_version": exchange.console.version}
    body = json.dumps({**said, "config_version": exchange.console.config_version}).encode()
    exchange.reply(200, body, content_type="application/json")


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


class _Handler(socketserver.StreamRequestHandler):
    server: "_Server"

    def handle(self) -> None:
        self.connection.settimeout(60)
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with contextlib.suppress(Gone, OSError, ValueError):
            while not self.server.console.closing.is_set():
                asked = self._read_request()
                if asked is None:
                    return
                self.server.console.asked.append(asked)
                self.server.console.answer(Exchange(self.server.console, asked, self.connection))

    def _read_request(self) -> Asked | None:
        first = self.rfile.readline(65536).decode("latin-1").split()
        if len(first) != 3:
            return None
        at = time.monotonic()
        headers = {}
        while line := self.rfile.readline(65536).decode().strip():
            name, _colon, value = line.partition(":")
            headers[name.lower()] = value.strip()
        length = int(headers.get("content-length", "0"))
        body = self.rfile.read(length)
        if len(body) < length:
            return None  # Broken off: no console would take half of it.
        parts = urlsplit(first[1])
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        return Asked(first[0], parts.path, query, headers, body, at)


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False
    request_queue_size = 1024

    def __init__(self, made: Console) -> None:
        self.console = made
        super().__init__(("127.0.0.1", made.port), _Handler)


@contextlib.contextmanager
def console(**fields: Any) -> Iterator[Console]:
    """A console while it is needed; afterwards nobody listens at its port."""
    made = Console(**fields)
    server = _Server(made)
    made.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield made
    finally:
        made.closing.set()
        made.cut()
        server.shutdown()
        server.server_close()
        thread.join()
