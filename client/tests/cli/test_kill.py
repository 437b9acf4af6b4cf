"""`switchgear kill`: through the console, or through data planes while it is away."""

import base64
import contextlib
import fcntl
import os
import pty
import subprocess
import sys
import termios
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from switchgear.cli import exits
from tests.cli.shell import CLOSE, TOKEN, Scripted, Shell, scripted

ORDERS = "/api/v1/emergency/orders"
ENGAGE = "/api/v1/switches/segment/finance/engage"
REASON = "Wrong figures in P&L answers since 14:02"
KILL = ("kill", "segment:finance", "--reason", REASON)
ORDER_ID = str(uuid.UUID(int=7))
WITHDRAW = ("kill", "--withdraw", ORDER_ID, "--reason", "It was a false alarm")
AWAY = Shell("http://127.0.0.1:1")


@pytest.fixture
def planes(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Scripted]]:
    """Three data planes, of which the first two accept orders and the third is away."""
    with scripted() as first, scripted() as second:
        for number, plane in enumerate((first, second), 1):
            plane.answer("POST", ORDERS, (201, acceptance(f"dp-{number}")))
        urls = f"{first.url}, {second.url} http://127.0.0.1:2"
        monkeypatch.setenv("SWITCHGEAR_PLANES", urls)
        yield [first, second]


def acceptance(*names: str, planes: int = 3) -> dict[str, object]:
    return {"id": ORDER_ID, "action": "engage", "accepted_by": list(names), "planes": planes}


def problem(status: int, detail: str, **more: object) -> tuple[int, dict[str, object]]:
    return status, {"status": status, "title": "Refused", "detail": detail, **more}


def test_order_goes_to_all_planes_if_the_console_is_away(planes: list[Scripted]) -> None:
    result = AWAY(*KILL, "--for", "4h")

    assert result.code == 0
    [[method, path, headers, body]] = planes[0].asked
    assert (method, path) == ("POST", ORDERS)
    assert headers["Authorization"] == f"Bearer {TOKEN}"
    assert uuid.UUID(body.pop("id"))
    assert body == {
        "action": "engage",
        "switch": "segment:finance",
        "reason": REASON,
        "expires_in": "4h",
    }
    assert "The console was not used: Can't reach the console" in result.err
    assert "segment:finance is engaged on data planes" in result.out
    assert "2 of 3 data planes confirmed it: dp-1, dp-2." in result.out
    assert "Not confirmed by http://127.0.0.1:2: can't be reached: connection refused." in (
        " ".join(result.out.split())
    )
    assert "switchgear kill --withdraw" in result.out


def test_all_planes_get_the_same_order(planes: list[Scripted]) -> None:
    AWAY(*KILL)

    first, second = (plane.asked[0][3] for plane in planes)
    assert first == second


def test_json_has_the_order_its_planes_and_what_failed(planes: list[Scripted]) -> None:
    result = AWAY(*KILL, "--json")

    assert result.code == 0
    assert result.json["path"] == "planes"
    assert result.json["id"] == ORDER_ID
    assert result.json["accepted_by"] == ["dp-1", "dp-2"]
    assert result.json["planes"] == 3
    assert [each["url"] for each in result.json["failed"]] == ["http://127.0.0.1:2"]
    assert "Can't reach the console" in result.json["console"]


@pytest.mark.parametrize(
    "answer",
    [
        CLOSE,
        problem(500, "An error"),
        problem(503, "PostgreSQL can't be reached"),
        problem(429, "Too many requests"),
        (502, {"Content-Type": "text/html"}, b"Bad gateway"),
        (403, {"Content-Type": "text/html"}, b"A proxy's page"),
    ],
    ids=["closed", "500", "503", "429", "proxy's 502", "proxy's 403"],
)
def test_console_that_fails_is_not_the_end(planes: list[Scripted], answer: object) -> None:
    with scripted() as console:
        console.answer("POST", ENGAGE, answer)

        result = Shell(console.url)(*KILL)

    assert result.code == 0
    assert len(planes[0].asked) == len(planes[1].asked) == 1


@pytest.mark.parametrize(
    ("status", "code"),
    [(401, exits.NO_RIGHTS), (403, exits.NO_RIGHTS), (409, exits.FAILED), (422, exits.FAILED)],
)
def test_refusal_of_the_console_is_final(planes: list[Scripted], status: int, code: int) -> None:
    with scripted() as console:
        console.answer("POST", ENGAGE, problem(status, "It is refused for a reason."))

        result = Shell(console.url)(*KILL)

    assert result.code == code
    assert "It is refused for a reason." in result.err
    assert planes[0].asked == []


def test_slow_console_is_given_up_within_seconds(planes: list[Scripted]) -> None:
    ended = threading.Event()
    with scripted() as console:
        console.next = lambda *_: CLOSE if ended.wait(30) else None  # type: ignore[method-assign]
        began = time.monotonic()

        result = Shell(console.url)(*KILL)

        took = time.monotonic() - began
        ended.set()
    assert took < 8
    assert result.code == 0


def test_without_planes_the_console_s_url_is_one() -> None:
    with scripted() as both:
        both.answer("POST", ENGAGE, problem(503, "PostgreSQL can't be reached"))
        both.answer("POST", ORDERS, (201, acceptance("dp-1", planes=1)))

        result = Shell(both.url)(*KILL)

    assert result.code == 0
    assert "1 of 1 data plane confirmed it: dp-1." in result.out


def test_planes_are_used_without_a_console(planes: list[Scripted]) -> None:
    result = Shell(None)(*KILL)

    assert result.code == 0
    assert "no console URL is set" in result.err


@pytest.mark.parametrize(
    ("answers", "code", "text"),
    [
        ((problem(401, "The token is invalid."),) * 2, exits.NO_RIGHTS, "The token is invalid."),
        ((problem(404, "No such order."), CLOSE), exits.NOT_FOUND, "No such order."),
        (
            (problem(404, "No such order."), problem(409, "The console has taken it over.")),
            exits.FAILED,
            "The console has taken it over.",
        ),
        ((CLOSE, problem(503, "The disk fails.")), exits.UNREACHABLE, "The disk fails."),
        (((200, {"page": 1}), (201, {"page": 1})), exits.UNREACHABLE, "not as a data plane does"),
        (
            (problem(422, "", errors={"reason": ["Is too short."]}), CLOSE),
            exits.FAILED,
            "--reason: Is too short.",
        ),
    ],
    ids=["401", "404", "409", "503", "another server", "422"],
)
def test_order_that_no_plane_accepts_fails(
    planes: list[Scripted], answers: tuple[object, object], code: int, text: str
) -> None:
    for plane, answer in zip(planes, answers, strict=True):
        plane.answer("POST", ORDERS, answer)

    result = AWAY(*WITHDRAW)

    assert result.code == code
    assert result.out == ""
    assert text in result.err
    assert "No data plane has confirmed the order." in result.err
    assert "  http://127.0.0.1:2: can't be reached: connection refused\n" in result.err


def test_withdrawal_goes_to_the_planes_alone(planes: list[Scripted]) -> None:
    with scripted() as console:
        result = Shell(console.url)(*WITHDRAW)
        assert console.asked == []

    assert result.code == 0
    body = planes[0].asked[0][3]
    assert (body["action"], body["order"]) == ("withdraw", ORDER_ID)
    assert body["reason"] == "It was a false alarm"
    assert "The emergency order is withdrawn on data planes." in result.out
    assert "release it there" in " ".join(result.out.split())


@pytest.mark.parametrize(
    "arguments",
    [
        ("kill", "--reason", REASON),
        ("kill", "feature:chat"),
        (*WITHDRAW, "feature:chat"),
        (*WITHDRAW, "--for", "1h"),
        ("kill", "--withdraw", "chat", "--reason", REASON),
        (*KILL, "--code", "--name", "a:b"),
    ],
)
def test_wrong_command_line_sends_nothing(
    planes: list[Scripted], arguments: tuple[str, ...]
) -> None:
    result = Shell(None, None)(*arguments)

    assert result.code == exits.USAGE
    assert planes[0].asked == []


def test_invalid_urls_of_planes_are_named_before_anything_is_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SWITCHGEAR_PLANES", "https://dp-1 https://user:secret@dp-2")

    result = AWAY(*KILL)

    assert result.code == exits.USAGE
    assert "URL 2 in SWITCHGEAR_PLANES is invalid" in result.err
    assert "secret" not in result.err


def test_code_is_typed_without_echo_and_sent_with_the_name(planes: list[Scripted]) -> None:
    code = "ABCDE-FGHIJ-KLMNO-PQRST-UVWXY"

    result, terminal = run_on_terminal(code, *KILL, "--code", "--name", "김")

    assert result.returncode == 0, result.stderr
    assert "Emergency code of 김: " in terminal
    assert code not in terminal + result.stdout + result.stderr
    sent = planes[0].asked[0][2]["Authorization"].removeprefix("Basic ")
    assert base64.b64decode(sent).decode() == f"김:{code}"


def test_code_needs_a_terminal(planes: list[Scripted]) -> None:
    environment = {**os.environ, "USER": "kim"}
    environment.pop("SWITCHGEAR_URL", None)
    result = subprocess.run(
        [sys.executable, "-m", "tests.cli.quick_cli", *KILL, "--code"],
        cwd=Path(__file__).parents[2],
        env=environment,
        input="the-code\n",
        capture_output=True,
        text=True,
        timeout=60,
        start_new_session=True,
        check=False,
    )

    assert result.returncode == exits.USAGE
    assert "needs a terminal" in result.stderr
    assert planes[0].asked == []


def run_on_terminal(typed: str, *arguments: str) -> tuple[subprocess.CompletedProcess[str], str]:
    """Run the command with a terminal, on which `typed` is typed; return what the terminal shows.

    Standard output and standard error are pipes.
    """
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "tests.cli.quick_cli", *arguments]
    environment = {k: v for k, v in os.environ.items() if k != "SWITCHGEAR_URL"}
    process = subprocess.Popen(
        command,
        cwd=Path(__file__).parents[2],
        env=environment,
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(theirs, termios.TIOCSCTTY, 0),
    )
    os.close(theirs)
    shown = b""
    while b": " not in shown:
        shown += os.read(ours, 1000)
    os.write(ours, f"{typed}\n".encode())
    out, err = process.communicate(timeout=60)
    os.set_blocking(ours, False)
    with contextlib.suppress(OSError):  # The terminal is closed.
        shown += os.read(ours, 10_000)
    os.close(ours)
    return subprocess.CompletedProcess(command, process.returncode, out, err), shown.decode()


@pytest.mark.django_db(transaction=True)
@pytest.mark.timeout(180)
def test_real_console_engages_the_switch(shell: Shell) -> None:
    result = shell(*KILL)

    assert result.code == 0
    assert "Engaged through the console." in result.out
    assert shell("status", "segment:finance", "--json").json["state"] == "engaged"


@pytest.mark.django_db(transaction=True)
@pytest.mark.timeout(180)
def test_real_data_plane_accepts_and_withdraws_an_order(
    own_shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWITCHGEAR_PLANES", own_shell.url)
    away = Shell("http://127.0.0.1:1", own_shell.token)

    killed = away(*KILL, "--json")
    order = killed.json["id"]
    snapshot = _read_snapshot(own_shell)
    withdrawn = away("kill", "--withdraw", order, "--reason", "It was a false alarm", "--json")

    assert killed.code == 0, killed.err
    assert killed.json["switch"] == "segment:finance"
    assert len(killed.json["accepted_by"]) == killed.json["planes"] == 1
    [entry] = snapshot["switches"]
    assert (entry["id"], entry["reason"]) == ("segment:finance", REASON)
    assert withdrawn.code == 0, withdrawn.err
    assert _read_snapshot(own_shell)["switches"] == []


def _read_snapshot(shell: Shell) -> dict:
    headers = {"Authorization": f"Bearer {shell.token}"}
    return httpx.get(f"{shell.url}/api/v1/snapshot", headers=headers, verify=False).json()
