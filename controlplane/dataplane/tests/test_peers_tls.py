"""Data planes behind TLS: connected by address, verified by the name in the URL."""

import asyncio
import contextlib
import ssl
from pathlib import Path

import pytest

from controlplane.dataplane.tests.lines import background, wait_until
from controlplane.dataplane.tests.neighbors import Neighbor
from controlplane.notify.delivery.tests.certificate import certificate


class TlsProxy:
    """Terminates TLS for a port of this host; records the names and bytes that clients send."""

    def __init__(self, port: int) -> None:
        self.names: list[str | None] = []
        self.received = b""
        self.port = 0
        self._far_port = port

    async def start(self) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate())
        context.sni_callback = lambda _line, name, _context: self.names.append(name)
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=context)
        self.port = server.sockets[0].getsockname()[1]

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._far_port)
        await asyncio.gather(
            self._pump(reader, far_writer, record=True), self._pump(far_reader, writer)
        )

    async def _pump(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, record: bool = False
    ) -> None:
        with contextlib.suppress(OSError, ssl.SSLError):
            while data := await source.read(65536):
                self.received += data if record else b""
                sink.write(data)
                await sink.drain()
        sink.close()


def test_a_plane_behind_tls_is_verified_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate()))
    with background() as loop:
        one, two = (Neighbor(loop, name, tmp_path / name) for name in ("dp-1", "dp-2"))
        proxy = TlsProxy(two.port)
        loop.run(proxy.start())
        good, wrong = (
            f"https://{name}:{proxy.port}" for name in ("hooks.example.org", "other.org")
        )
        try:
            two.start()
            one.start(good, wrong, resolver=lambda _host, _port: ["127.0.0.1"])
            wait_until(lambda: one.statuses() == {"reachable": 1, "unreachable": 1}, 5)
            response = one.order().json()
        finally:
            one.stop()
            two.stop()

    assert response["accepted_by"] == ["dp-1", "dp-2"]
    assert set(proxy.names) == {"hooks.example.org", "other.org"}
    assert f"host: hooks.example.org:{proxy.port}".encode() in proxy.received.lower()
    assert b"other.org" not in proxy.received  # Nothing was sent to the wrong name.
