"""Requests that go by a proxy, by TLS, or by both."""

import base64
import contextlib
import http.server
import socket
import socketserver
import ssl
import subprocess
import threading
import time

import pytest

from switchgear.console.address import Address
from switchgear.console.errors import RequestFailed
from switchgear.console.transport import Connection
from tests.fake_console import SNAPSHOT, TOKEN, console


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def connection(url):
    return Connection(Address.parse(url), TOKEN)


class Proxy(http.server.BaseHTTPRequestHandler):
    """Passes requests on, and opens tunnels; `seen` has the first lines and the credentials."""

    disable_nagle_algorithm = True
    seen: list = []

    def do_CONNECT(self):
        self.seen.append((self.requestline, self.headers["Proxy-Authorization"]))
        host, _colon, port = self.path.rpartition(":")
        with socket.create_connection((host, int(port))) as there:
            self.connection.sendall(b"HTTP/1.1 200 Established\r\nX: y\r\n\r\n")
            pump = threading.Thread(target=copy, args=(there, self.connection), daemon=True)
            pump.start()
            copy(self.connection, there)
        self.close_connection = True

    def do_GET(self):
        self.seen.append((self.requestline, self.headers["Proxy-Authorization"]))
        self.send_response(200)
        self.send_header("Content-Length", "6")
        self.end_headers()
        self.wfile.write(b"passed")

    def log_message(self, *_):
        pass


def copy(source, target):
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


@pytest.fixture
def proxy():
    Proxy.seen = []
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Proxy) as server:
        server.daemon_threads, server.block_on_close = True, False
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"us%40er:pass@127.0.0.1:{server.server_address[1]}"
        server.shutdown()


BASIC = f"Basic {base64.b64encode(b'us@er:pass').decode()}"


def test_a_proxy_of_the_environment_is_used(monkeypatch, proxy):
    monkeypatch.setenv("http_proxy", proxy)
    assert connection("http://there.example/base").request("GET", "/x?y").body == b"passed"
    assert Proxy.seen == [("GET http://there.example/base/x?y HTTP/1.1", BASIC)]


def test_who_needs_no_proxy_is_asked_without(monkeypatch, proxy):
    monkeypatch.setenv("http_proxy", f"http://{proxy}")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with console() as there:
        assert connection(there.url).request("GET", SNAPSHOT).status == 200
    assert not Proxy.seen


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    command = [
        "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
        "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
        "-keyout", path, "-out", f"{path}.crt",
    ]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    path.write_bytes(path.read_bytes() + path.with_name("both.pem.crt").read_bytes())
    return path


@pytest.fixture
def secure(certificate):
    """A port that speaks TLS and answers requests in HTTP/1.1."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    class Server(http.server.ThreadingHTTPServer):
        def get_request(self):
            accepted, address = self.socket.accept()
            return context.wrap_socket(
                accepted, server_side=True, do_handshake_on_connect=False
            ), address

        def handle_error(self, *_):
            pass

    class Kept(Proxy):
        protocol_version = "HTTP/1.1"

    Kept.seen = []
    server = Server(("127.0.0.1", 0), Kept)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"https://localhost:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def test_a_certificate_is_verified(secure, certificate, monkeypatch):
    with pytest.raises(RequestFailed, match="certificate rejected"):
        connection(secure).request("GET", "/x", seconds=5)
    monkeypatch.setenv("SSL_CERT_FILE", f"{certificate}.crt")
    client = connection(secure)
    for _ in range(3):
        assert client.request("GET", "/x", seconds=5).body == b"passed"
    other = connection(secure.replace("localhost", "127.0.0.1"))
    with pytest.raises(RequestFailed, match="certificate rejected"):
        other.request("GET", "/x", seconds=5)


def test_a_tunnel_leads_through_a_proxy(secure, certificate, proxy, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", f"{certificate}.crt")
    monkeypatch.setenv("https_proxy", proxy)
    client = connection(secure)
    for _ in range(2):
        assert client.request("GET", "/x", seconds=5).body == b"passed"
    authority = secure.removeprefix("https://")
    assert Proxy.seen == [(f"CONNECT {authority} HTTP/1.1", BASIC)]


def test_an_abort_ends_what_waits_for_tls():
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        client = connection(f"https://127.0.0.1:{deaf.getsockname()[1]}")

        def abort_when_greeted() -> None:
            accepted, _ = deaf.accept()
            with accepted:
                accepted.recv(1)
                client.abort()

        threading.Thread(target=abort_when_greeted).start()
        began = time.monotonic()
        with pytest.raises(RequestFailed, match="closed by this client"):
            client.request("GET", "/", seconds=30)
        assert time.monotonic() - began < 5
