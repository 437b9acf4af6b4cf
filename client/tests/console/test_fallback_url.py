"""While the console is down, a client follows a signed file on the web: its last resort."""

import contextlib
import json
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from controlplane.core.signatures import SigningKey, sign
from tests import faults
from tests.console.follower_parts import following
from tests.fake_console import TOKEN, console, document, entry
from tests.quick_client import QUICK, QuickClient
from tests.wait_helpers import our_threads, wait_until

KEY = SigningKey.generate()
PUBLIC = str(KEY.public)
QUICK_FALLBACK = replace(QUICK, fallback_after=0.3, fallback_poll=0.05, fallback_check=0.05)
EPOCH = str(uuid.UUID(int=1))


class FallbackClient(QuickClient):
    @staticmethod
    def _make_timings():
        return QUICK_FALLBACK


@dataclass
class FileServer:
    """A server of one file, which notes the requests for it: its status and headers."""

    content: bytes = b""
    url: str = ""
    asked: list[tuple[int, dict[str, str]]] = field(default_factory=list)

    def publish(
        self, text: bytes, *, key: SigningKey = KEY, age_seconds: float = 0.0, **fields
    ) -> None:
        confirmed_at = datetime.fromtimestamp(time.time() - age_seconds, UTC).isoformat()
        file = {"signature": sign(text, [key]), "confirmed_at": confirmed_at}
        self.content = json.dumps({**file, "snapshot": text.decode(), **fields}).encode()


@contextlib.contextmanager
def file_server() -> Iterator[FileServer]:
    there = FileServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            content, tag = there.content, f'"{hash(there.content)}"'
            headers = {name.lower(): value for name, value in self.headers.items()}
            status = 304 if headers.get("if-none-match") == tag else 200
            if not content or self.path != "/files/snapshot.json?signature=a":
                status = 404
            there.asked.append((status, headers))
            self.send_response(status)
            self.send_header("ETag", tag)
            self.send_header("Content-Length", "0" if status != 200 else str(len(content)))
            self.end_headers()
            if status == 200:
                self.wfile.write(content)

        def log_message(self, *_args: object) -> None:
            """Write nothing to the terminal."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    there.url = f"http://127.0.0.1:{server.server_address[1]}/files/snapshot.json?signature=a"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield there
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def published(version: int, *switches: str, epoch: str = EPOCH, published_at: float = 0) -> bytes:
    moment = datetime.fromtimestamp(published_at or time.time(), UTC).isoformat()
    rows = {each: entry(each) for each in switches}
    return document(epoch, version, rows, published_at=moment)


def client(url: str, file: FileServer, **arguments) -> FallbackClient:
    arguments = {"state_dir": None, **arguments}
    return FallbackClient(url, TOKEN, public_key=PUBLIC, fallback_url=file.url, **arguments)


def test_file_is_followed_while_the_console_is_down_and_not_before():
    with file_server() as file, console(signing_keys=(KEY,)) as there:
        there.epoch = EPOCH
        file.publish(published(100, "feature:search"))
        there.engage("feature:chat")
        with client(there.url, file) as gear:
            assert gear.wait_ready()
            time.sleep(1)
            assert not file.asked
            assert gear.status().source == "console"

            there.lie = faults.errors
            there.cut()
            wait_until(lambda: not gear.allowed(feature="search"), 20)
            wait_until(lambda: gear.status().source == "fallback", 20)
            status = gear.status()
            assert (status.source, status.way, status.version) == ("fallback", "down", 100)
            assert status.error == "status 500"
            assert status.fallback_error is None

            file.publish(published(101, "feature:more"))
            wait_until(lambda: not gear.allowed(feature="more"), 20)
            wait_until(lambda: file.asked[-1][0] == 304, 20)
            assert all("authorization" not in headers for _, headers in file.asked)

            there.version, there.lie = 101, None
            there.release("feature:chat")
            wait_until(lambda: gear.status().source == "console", 20)
            assert gear.allowed(feature="more")
            time.sleep(0.2)
            before = len(file.asked)
            time.sleep(0.5)
            assert len(file.asked) == before


def test_service_that_starts_while_the_console_is_down_gets_the_file():
    with file_server() as file, console(lie=faults.errors) as there:
        file.publish(published(7, "feature:chat"), age_seconds=120)
        with client(there.url, file) as gear:
            wait_until(lambda: not gear.allowed(feature="chat"), 20)
            assert 120 <= gear.status().age_seconds < 150
            assert not gear.wait_ready(0)


def test_file_with_the_version_in_force_confirms_it():
    with file_server() as file, console(signing_keys=(KEY,)) as there:
        there.engage("feature:chat")
        with client(there.url, file) as gear:
            assert gear.wait_ready()
            there.lie = faults.errors
            there.cut()
            time.sleep(1)
            file.publish(there.published, age_seconds=0)
            wait_until(lambda: gear.status().source == "fallback", 20)
            assert gear.status().age_seconds < 1
            file.publish(there.published, age_seconds=500)
            asked = len(file.asked)
            wait_until(lambda: len(file.asked) > asked + 1, 20)
            assert gear.status().age_seconds < 400


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (published(4), "invalid snapshot: It is outdated."),
        (published(9, epoch=str(uuid.UUID(int=5))), "invalid snapshot: It is outdated."),
        (
            published(9, epoch=str(uuid.UUID(int=2)), published_at=time.time() - 60),
            "invalid snapshot: It is outdated.",
        ),
    ],
    ids=["version", "left epoch", "epoch published before"],
)
def test_file_that_is_behind_releases_nothing(text, error):
    with file_server() as file, console(signing_keys=(KEY,)) as there:
        file.publish(text)
        there.epoch = str(uuid.UUID(int=5))
        with client(there.url, file, stream=False) as gear:
            assert gear.wait_ready()
            there.epoch, there.version = EPOCH, 5
            there.engage("feature:chat")
            wait_until(lambda: not gear.allowed(feature="chat"), 20)

            there.lie = faults.errors
            wait_until(lambda: gear.status().fallback_error == error, 20)
            assert not gear.allowed(feature="chat")
            assert gear.status().source == "console"


def test_file_does_not_replace_a_newer_bootstrap():
    bootstrap = published(8, "feature:chat")
    file_content = {"signature": sign(bootstrap, [KEY]), "snapshot": bootstrap.decode()}
    file_content["confirmed_at"] = "2026-11-22T03:00:00Z"
    with file_server() as file, console(lie=faults.errors) as there:
        file.publish(published(7))
        with client(there.url, file, bootstrap=file_content) as gear:
            wait_until(lambda: gear.status().fallback_error, 20)
            assert not gear.allowed(feature="chat")
            assert gear.status().source == "bootstrap"


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"key": SigningKey.generate()}, "signature: unknown key"),
        ({"signature": ""}, "signature: missing"),
        ({"snapshot": published(7).decode()}, "signature: wrong"),
        ({"snapshot": 7}, "It is not a published snapshot."),
        ({"confirmed_at": "yesterday"}, "It is not a published snapshot."),
        ({"confirmed_at": "2026-11-22T03:00:00"}, "It is not a published snapshot."),
    ],
)
def test_file_that_is_not_signed_or_damaged_is_refused(change, error, caplog):
    with file_server() as file, console(lie=faults.errors) as there:
        file.publish(published(7, "feature:chat"), **change)
        with client(there.url, file) as gear:
            wait_until(lambda: error in (gear.status().fallback_error or ""), 20)
            wait_until(lambda: len(file.asked) > 3, 20)
            assert gear.allowed(feature="chat")
            assert gear.status().source == "none"

            file.publish(published(7, "feature:chat"))
            wait_until(lambda: not gear.allowed(feature="chat"), 20)
            wait_until(lambda: gear.status().fallback_error is None, 20)
    warnings = [each for each in caplog.messages if error in each]
    assert len(warnings) == 1
    assert "signature=a" not in caplog.text


def test_orders_in_force_outlive_the_file():
    order = str(uuid.UUID(int=11))
    with file_server() as file, console(signing_keys=(KEY,)) as there:
        there.order("feature:chat", order)
        with client(there.url, file) as gear:
            assert gear.wait_ready()
            there.lie = faults.errors
            there.cut()
            file.publish(published(there.version + 1, epoch=there.epoch))
            wait_until(lambda: gear.status().source == "fallback", 20)
            assert not gear.allowed(feature="chat")
            assert gear.status().orders == (order,)


def test_snapshot_of_the_file_is_cached_on_disk(tmp_path):
    with file_server() as file, console(lie=faults.errors) as there:
        file.publish(published(7, "feature:chat"))
        with client(there.url, file, state_dir=tmp_path) as gear:
            wait_until(lambda: not gear.allowed(feature="chat"), 20)
            wait_until(lambda: list(tmp_path.glob("*.snapshot")), 20)
        file.content = b""
        with client(there.url, file, state_dir=tmp_path) as gear:
            assert not gear.allowed(feature="chat")
            assert gear.status().source == "disk"


def test_thread_of_the_file_ends_with_the_client_and_is_not_started_without_a_url():
    with file_server() as file, console(signing_keys=(KEY,)) as there:
        with following(there, public_keys=(PUBLIC,)):
            assert "switchgear-fallback" not in our_threads()
        with client(there.url, file):
            assert "switchgear-fallback" in our_threads()
        assert "switchgear-fallback" not in our_threads()


def test_offline_client_does_not_ask_for_the_file():
    with file_server() as file:
        file.publish(published(7, "feature:chat"))
        with client("http://127.0.0.1:9", file, offline=True):
            time.sleep(1)
        assert not file.asked
