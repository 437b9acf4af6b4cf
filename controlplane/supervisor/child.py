"""A supervised child process: start, output, signals, end, and the delay before each restart."""

import contextlib
import os
import signal
import subprocess
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from controlplane.supervisor import lifeline
from controlplane.supervisor.failure import CannotRun
from controlplane.supervisor.identity import ServiceUser
from controlplane.supervisor.output import Lines, make_printable

FIRST_DELAY_SECONDS = 0.1
MAX_DELAY_SECONDS = 5.0
QUICK_DEATH_SECONDS = 2.0
QUICK_DEATHS_ALLOWED = 5
STEADY_SECONDS = 30.0
_TAIL_LINES = 20
# More than a pipe holds; limited, because an escaped descendant may still be writing to it.
_LAST_READS = 32


@dataclass(frozen=True)
class ChildSpec:
    """A process to run, and how to supervise it.

    `prepare` is called before every start and must not block. If it returns False, it is called
    again later. `repair` is called after each death, and may return a process to run before the
    restart. A run survives the deaths of `optional` children. `stdin` is the content of standard
    input. Output goes to the terminal, or to the file `log`; then the terminal shows only errors
    and the lines that could not be written to the file. With `keeps_stdout`, standard output is
    stored. The kernel sends `orphan_signal` if the supervisor is killed. An `attached` process
    shares the supervisor's terminal and process group.
    """

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    directory: Path
    user: ServiceUser | None = None
    stop_signal: signal.Signals = signal.SIGTERM
    orphan_signal: signal.Signals = signal.SIGKILL
    stdin: bytes | None = None
    log: Path | None = None
    keeps_stdout: bool = False
    attached: bool = False
    prepare: Callable[[], bool] = lambda: True
    optional: bool = False
    repair: Callable[["Child"], "ChildSpec | None"] = lambda _child: None


@dataclass
class Restarts:
    """Counts a child's deaths in a row, which determine the delay before its restart."""

    in_a_row: int = 0
    quick_in_a_row: int = 0

    @property
    def is_failing(self) -> bool:
        """True if the child died soon after its start `QUICK_DEATHS_ALLOWED` times in a row."""
        return self.quick_in_a_row >= QUICK_DEATHS_ALLOWED

    def delay_seconds(self, lived_seconds: float) -> float:
        """Count a death; return the delay of the restart, which doubles with every next death."""
        is_quick = lived_seconds < QUICK_DEATH_SECONDS
        self.quick_in_a_row = self.quick_in_a_row + 1 if is_quick else 0
        self.in_a_row = 1 if lived_seconds >= STEADY_SECONDS else self.in_a_row + 1
        doublings = min(self.in_a_row - 1, 16)
        return float(min(FIRST_DELAY_SECONDS * 2**doublings, MAX_DELAY_SECONDS))


class Child:
    """A supervised child process; each restart runs its `spec` in a new process."""

    def __init__(self, spec: ChildSpec, write_line: Callable[[bytes], bool]) -> None:
        self.spec = spec
        self.restarts = Restarts()
        self.pid: int | None = None
        self.exit_code: int | None = None
        self.started_at = 0.0
        self.start_at: float | None = None
        self.repairing: Child | None = None
        self.tail: deque[bytes] = deque(maxlen=_TAIL_LINES)
        self.stdout = b""
        self.has_lost_lines = False
        self.streams: dict[int, Callable[[bytes], None]] = {}
        self._lines: list[Lines] = []
        self._write_line = write_line
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def is_alive(self) -> bool:
        return self.pid is not None

    def start(self, now: float) -> None:
        """Start a process for the child; raise `CannotRun` if it can't be executed."""
        self.start_at, self.exit_code, self.started_at = None, None, now
        self.tail.clear()
        self.has_lost_lines = False
        try:
            self._process = self._spawn()
        except (OSError, subprocess.SubprocessError) as error:
            self.close_streams()
            raise CannotRun(f"{self.spec.name} can't be started: {error}", 127) from error
        self.pid = self._process.pid

    def send(self, signum: int) -> None:
        """Send a signal to the child's process, which forwards it to its own children."""
        if self.pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signum)

    def kill_group(self) -> None:
        """Kill the child's process group; of an `attached` child only the process itself."""
        if self._process is None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if self.spec.attached:
                self.send(signal.SIGKILL)
            else:
                os.killpg(self._process.pid, signal.SIGKILL)

    def read(self, descriptor: int) -> bool:
        """Pass on the available output from a descriptor; return False at the output's end."""
        try:
            chunk = os.read(descriptor, 65_536)
        except BlockingIOError:
            return True
        if chunk:
            self.streams[descriptor](chunk)
        return bool(chunk)

    def finish(self, exit_code: int) -> None:
        """Clean up after the process has ended: kill its group, and read its remaining output."""
        self.kill_group()
        for descriptor in self.streams:
            for _ in range(_LAST_READS):
                if not self.read(descriptor):
                    break
        for lines in self._lines:
            self._handle_lines(lines.end())
        if self._process is not None:
            self._process.returncode = exit_code
        self.pid, self.exit_code = None, exit_code

    def close_stream(self, descriptor: int) -> None:
        del self.streams[descriptor]
        os.close(descriptor)

    def close_streams(self) -> None:
        for descriptor in self.streams:
            os.close(descriptor)
        self.streams.clear()
        self._lines.clear()

    def describe_end(self) -> str:
        code = self.exit_code or 0
        return f"killed by signal {-code}" if code < 0 else f"exit code {code}"

    def format_tail(self) -> str:
        """Return the last lines of the output, formatted for the end of an error message."""
        lines = "".join(f"\n    {make_printable(line)}" for line in self.tail)
        return lines or " It printed nothing."

    def _spawn(self) -> "subprocess.Popen[bytes]":
        spec = self.spec
        with contextlib.ExitStack() as ends:
            out: int | None = None
            err: int | None = None
            if not spec.attached:
                lines = Lines()
                self._lines.append(lines)
                err = self._pipe(ends, lambda chunk: self._handle_lines(lines.feed(chunk)))
                out = self._pipe(ends, self._append_stdout) if spec.keeps_stdout else err
            stdin = None if spec.attached else _open_input(ends, spec.stdin)
            process: subprocess.Popen[bytes] = subprocess.Popen(
                spec.command,
                cwd=spec.directory,
                env=dict(spec.environment),
                stdin=stdin,
                stdout=out,
                stderr=err,
                start_new_session=not spec.attached,
                preexec_fn=partial(lifeline.bind_to_parent, os.getpid(), spec.orphan_signal),
                **(spec.user.popen_options() if spec.user else {}),
            )
            return process

    def _pipe(self, ends: contextlib.ExitStack, take: Callable[[bytes], None]) -> int:
        read_end, write_end = os.pipe()
        os.set_blocking(read_end, False)
        self.streams[read_end] = take
        ends.callback(os.close, write_end)
        return write_end

    def _append_stdout(self, chunk: bytes) -> None:
        self.stdout += chunk

    def _handle_lines(self, lines: list[bytes]) -> None:
        self.tail.extend(lines)
        for line in lines:
            self.has_lost_lines |= not self._write_line(line)


def _open_input(ends: contextlib.ExitStack, content: bytes | None) -> int:
    if content is None:
        return subprocess.DEVNULL
    # A pipe leaves no password on a disk; the content must fit into its buffer.
    read_end, write_end = os.pipe()
    ends.callback(os.close, read_end)
    os.write(write_end, content)
    os.close(write_end)
    return read_end
