"""Sentences about switches and ramps, from a console that is a real local HTTP server."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from demo import console, core, world
from demo.faults import Faults
from demo.http_service import FaultyService, ServiceResponse, run_service
from switchgear import Change
from switchgear.testing import Console

SWITCH = "feature:nl2sql"
AGAIN = Change(SWITCH, "ramping", "engaged", "Wrong figures", 0.0, 7)


@pytest.fixture
def ramps() -> list[Mapping[str, Any]]:
    """The ramps that the console returns, newest first."""
    return []


@pytest.fixture(autouse=True)
def served(
    ramps: list[Mapping[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    (tmp_path / "token").write_text("sg_abc_secret\n")
    routes = {("GET", "/api/v1/ramps/"): lambda _: ServiceResponse(200, {"results": ramps})}
    with run_service(FaultyService(routes, Faults()), poll_seconds=0.01) as port:
        monkeypatch.setenv("SWITCHGEAR_URL", f"http://127.0.0.1:{port}")
        monkeypatch.setenv("DEMO_TOKEN_FILE", str(tmp_path / "token"))
        yield


def ended_ramp(error: str, compensated_at: str | None = "2026-11-28T16:00:00Z") -> dict[str, Any]:
    return {"compensated_at": compensated_at, "error": error}


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        ([], "feature:nl2sql is engaged"),
        ([ended_ramp("", None)], "feature:nl2sql is engaged"),
        (
            [ended_ramp("A gate failed: x"), ended_ramp("Earlier")],
            "the ramp of feature:nl2sql was aborted, so it is engaged again: A gate failed: x",
        ),
    ],
)
def test_an_engagement_after_a_ramp_says_why(
    ramps: list[Mapping[str, Any]], found: list[Mapping[str, Any]], sentence: str
) -> None:
    ramps.extend(found)

    assert console.describe_change(AGAIN) == sentence


def test_a_step_of_a_ramp_says_its_share() -> None:
    change = Change(SWITCH, "engaged", "ramping", "Wrong figures", 5.0, 7)

    assert (
        console.describe_change(change)
        == "feature:nl2sql is ramping: 5 % of its traffic is allowed"
    )


def test_unreachable_console_is_said_to_be_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWITCHGEAR_URL", "http://127.0.0.1:1")

    assert "its ramp can't be read" in console.describe_change(AGAIN)
    assert "did not say which switches are still engaged" in console.describe_leftovers()


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bytes]]:
    """The pieces of the response that a broken console sends, half a second apart."""
    pieces: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setenv("SWITCHGEAR_URL", f"http://127.0.0.1:{server.getsockname()[1]}")

        def serve() -> None:
            with contextlib.suppress(OSError):
                connection, _ = server.accept()
                with connection:
                    connection.recv(10_000)
                    for piece in pieces:
                        connection.sendall(piece)
                        time.sleep(0.5)

        thread = threading.Thread(target=serve)
        thread.start()
        yield pieces
        server.close()
        thread.join(10)


HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"


@pytest.mark.parametrize(
    "body", [b"<html>", b'{"detail": "x"}', b"[]", b'{"results": 1}', b'{"results": [']
)
def test_unusable_response_is_said_to_be_the_reason(answer: list[bytes], body: bytes) -> None:
    answer.append(HEAD % len(body) + body)

    assert (
        console.describe_leftovers() == "the console did not say which switches are still engaged:"
        " the response is not a list of the console's API"
    )


def test_incomplete_response_is_said_to_be_the_reason(answer: list[bytes]) -> None:
    answer.append(HEAD % 50 + b'{"results": ')

    assert (
        "engaged again; its ramp can't be read: the response is incomplete"
        in console.describe_change(AGAIN)
    )


def test_response_that_arrives_in_drops_is_not_awaited(answer: list[bytes]) -> None:
    answer.append(HEAD % 15)
    answer.extend(bytes([byte]) for byte in b'{"results": []}')
    began = time.monotonic()

    lines = console.describe_leftovers()

    assert time.monotonic() - began < 3
    assert lines.endswith("still engaged: no response in time")


def test_core_sends_its_final_report_before_it_asks_for_leftovers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gear = Console().client(service="core")
    monkeypatch.setenv("REDIS_URL", "redis://127.0.0.1:1/0")
    for name in world.SERVICES:
        monkeypatch.setenv(f"DEMO_{name.upper()}_PORT", "1")
    monkeypatch.setattr(world, "connect", lambda _: gear)
    monkeypatch.setattr(core, "serve", lambda *_: None)
    was_closed = []
    monkeypatch.setattr(console, "describe_leftovers", lambda: was_closed.append(gear._closed))

    core.main()

    assert was_closed == [True]


def test_leftovers_are_named_with_their_release_commands() -> None:
    found = {"engaged": [{"id": "global:all", "state": "engaged"}], "ramping": []}

    lines = console.describe_leftovers(lambda _, state: found[state]).splitlines()

    assert lines == [
        "still engaged: global:all (engaged). To release, after the next start:",
        ".venv/bin/python manage.py killswitch release --global --mode immediate"
        " --reason 'The demo is over'",
    ]
    assert console.describe_leftovers(lambda *_, **__: []) == ""
