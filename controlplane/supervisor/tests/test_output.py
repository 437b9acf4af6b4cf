"""Lines of children on their way to a terminal or a file."""

import os
from pathlib import Path

import pytest

from controlplane.supervisor.child import Child, ChildSpec
from controlplane.supervisor.output import Lines, RotatingFile, Terminal, find_error

CUT = b'{"event": "task.failed", "level": "error", "exception": "Traceback'
DEEP = b'{"level": "error", "seen": ' + b"[" * 8_000


def test_lines_are_put_together_from_chunks() -> None:
    lines = Lines()

    assert lines.feed(b"one\ntw") == [b"one"]
    assert lines.feed(b"o\r\n\nthr") == [b"two", b""]
    assert lines.end() == [b"thr"]
    assert lines.end() == []


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (b'{"event": "celery@vm ready.", "level": "info"}', None),
        (b'{"seen": {"level": "error"}, "event": "audited", "level": "info"}', None),
        (b"worker: Warm shutdown (MainProcess)", None),
        (b'{"event": "outbox.stuck", "level": "critical"}', b"critical: outbox.stuck"),
        (
            b'{"event": "task.failed", "level": "error", "exception": "Trace\\nKeyError: 1"}',
            b"error: task.failed: KeyError: 1",
        ),
        (CUT, CUT),
        (DEEP, DEEP[:300]),
        (b'[{"level": "error", "event": "x"}]', None),
        (b'{"x": {"level": "error"}, "level": ["a"]}', None),
    ],
)
def test_only_errors_of_a_log_are_shown_in_the_terminal(line: bytes, error: bytes | None) -> None:
    assert find_error(line) == error


def test_a_line_without_end_is_cut() -> None:
    lines = Lines()

    cut = lines.feed(b"x" * 20_000)

    assert [len(line) for line in cut] == [8_192, 8_192]
    assert len(lines.end()[0]) == 20_000 - 2 * 8_192


def test_a_terminal_that_reads_gets_every_line_with_its_name() -> None:
    read_end, write_end = os.pipe()
    terminal = Terminal(write_end)

    terminal.say("up")
    terminal.pass_on("web", "ça va".encode())
    terminal.write_waiting()

    assert os.read(read_end, 1000).decode() == "switchgear | up\nweb        | ça va\n"


def test_a_child_cannot_control_the_terminal() -> None:
    read_end, write_end = os.pipe()
    terminal = Terminal(write_end)
    error = find_error(b'{"event": "x", "level": "error", "exception": "E: \\u001b[2J\\u009b1A"}')
    assert error is not None

    terminal.pass_on("web", error)
    terminal.pass_on("web", b"\tat \x1b]0;title\x07 \xff")
    terminal.write_waiting()

    assert os.read(read_end, 1000).decode().splitlines() == [
        "web        | error: x: E: ?[2J?1A",
        "web        |  at ?]0;title? \ufffd",
    ]


def test_the_last_lines_of_a_child_cannot_control_the_terminal() -> None:
    child = Child(ChildSpec("beat", (), {}, Path("/")), lambda _line: True)
    child.tail.append(b"ValueError: \x1b[2J")

    assert child.format_tail() == "\n    ValueError: ?[2J"


def test_a_terminal_that_does_not_read_blocks_nobody_and_drops_lines() -> None:
    read_end, write_end = os.pipe()
    terminal = Terminal(write_end)

    for number in range(20_000):
        terminal.pass_on("worker", b"line %d" % number)
        if number % 100 == 0:
            terminal.write_waiting()
    terminal.say("still here")

    received = b""
    os.set_blocking(read_end, False)
    while terminal.has_waiting:
        terminal.write_waiting()
        received += os.read(read_end, 1_000_000)
    terminal.pass_on("worker", b"afterwards")
    terminal.write_waiting()
    received += os.read(read_end, 1_000_000)
    lines = received.decode().splitlines()
    assert "switchgear | still here" in lines
    assert any("lines were dropped" in line for line in lines)
    assert lines[-1] == "worker     | afterwards"
    assert len(lines) < 20_000


def test_a_reader_that_left_is_no_reason_to_stop() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    terminal = Terminal(write_end)

    terminal.say("anybody?")
    terminal.write_waiting()

    assert not terminal.has_waiting


def test_a_log_file_rotates_and_keeps_a_few(tmp_path: Path) -> None:
    log = RotatingFile(tmp_path / "postgres.log", file_bytes=100, kept=2)

    for number in range(40):
        log.write_line(b"line %02d" % number)
    log.close()

    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["postgres.log", "postgres.log.1", "postgres.log.2"]
    assert all(path.stat().st_size <= 100 for path in tmp_path.iterdir())
    assert (tmp_path / "postgres.log").read_text().endswith("line 39\n")


def test_a_full_disk_costs_lines_of_a_log_and_is_said_once(tmp_path: Path) -> None:
    path = tmp_path / "postgres.log"
    path.symlink_to("/dev/full")
    messages: list[str] = []
    log = RotatingFile(path, say=messages.append)

    written = [log.write_line(line) for line in (b"one", b"two")]
    path.unlink()
    written.append(log.write_line(b"three"))
    log.close()

    assert written == [False, False, True]
    assert messages == [
        "postgres.log can't be written: No space left on device."
        " Until it can, its lines appear here."
    ]
    assert path.read_text() == "2 lines could not be written\nthree\n"


def test_a_log_whose_folder_is_gone_is_closed_without_an_error(tmp_path: Path) -> None:
    log = RotatingFile(tmp_path / "away" / "postgres.log")

    log.write_line(b"one")
    log.close()

    assert not (tmp_path / "away").exists()


def test_a_terminal_on_a_full_disk_goes_on_once_there_is_room(tmp_path: Path) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    terminal = Terminal(full)
    terminal.pass_on("web", b"lost")
    terminal.write_waiting()

    with (tmp_path / "out").open("wb") as file:
        os.dup2(file.fileno(), full)
        terminal.pass_on("web", b"kept")
        terminal.write_waiting()
    os.close(full)

    lines = (tmp_path / "out").read_text().splitlines()
    assert lines == [
        "switchgear | 1 lines were dropped: the reader is gone or the disk is full",
        "web        | kept",
    ]
