"""The event loop that supervises a run's child processes, all from one thread."""

import contextlib
import os
import selectors
import signal
import socket
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from types import FrameType

from controlplane.supervisor import lifeline
from controlplane.supervisor.child import (
    QUICK_DEATH_SECONDS,
    QUICK_DEATHS_ALLOWED,
    Child,
    ChildSpec,
)
from controlplane.supervisor.failure import CannotRun, StopRequested
from controlplane.supervisor.output import RotatingFile, Terminal, add_name, find_error

_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_IDLE_SECONDS = 1.0
_POLL_SECONDS = 0.05
_DEATHS_BETWEEN_REASONS = 60  # A child that keeps dying is reported about every five minutes.


class Tree:
    """Context manager that supervises a run's child processes and ends them at its exit.

    If a child dies repeatedly soon after its start, and `may_give_up()`, it raises `CannotRun`.
    """

    def __init__(self, terminal: Terminal, may_give_up: Callable[[], bool] = lambda: True) -> None:
        self.terminal = terminal
        self.may_give_up = may_give_up
        self.stop_signal: int | None = None
        self._supervised: list[Child] = []
        self._running: dict[int, Child] = {}
        self._logs: dict[Path, RotatingFile] = {}
        self._stopping = False
        self._selector = selectors.PollSelector()
        self._awake, self._waker = socket.socketpair()

    def __enter__(self) -> "Tree":
        for end in (self._awake, self._waker):
            end.setblocking(False)
        self._selector.register(self._awake, selectors.EVENT_READ)
        signal.set_wakeup_fd(self._waker.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda _signum, _frame: None)  # Only wakes the loop.
        for signum in _STOP_SIGNALS:
            if signum == signal.SIGHUP and signal.getsignal(signum) is signal.SIG_IGN:
                continue  # Started by nohup.
            signal.signal(signum, self._note_signal)
        lifeline.adopt_orphans()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop(self._supervised, grace_seconds=0)
        self._kill_orphans()
        for log in self._logs.values():
            log.close()
        self.terminal.drain(seconds=0.5)
        signal.set_wakeup_fd(-1)
        self._selector.close()
        self._awake.close()
        self._waker.close()

    def supervise(self, spec: ChildSpec) -> Child:
        """Start a long-running child; it is restarted whenever it dies."""
        child = self._new(spec)
        child.start_at = time.monotonic()
        self._supervised.append(child)
        self._start_due()
        return child

    def retire(self, child: Child, grace_seconds: float) -> None:
        """Stop a supervised child for good; kill it after `grace_seconds`."""
        self._supervised.remove(child)
        child.send(child.spec.stop_signal)
        if not self.wait_until(lambda: not child.is_alive, grace_seconds, ask=_POLL_SECONDS):
            child.kill_group()

    def launch(self, spec: ChildSpec) -> Child:
        """Start a child that is not restarted when it ends."""
        child = self._new(spec)
        self._start(child)
        return child

    def run_once(self, spec: ChildSpec, timeout_seconds: float | None = None) -> Child:
        """Run a child until it ends, and return it; stop it after the timeout."""
        child = self.launch(spec)
        try:
            self.wait_until(lambda: not child.is_alive, timeout_seconds)
        finally:
            if child.is_alive:
                self.stop([child], grace_seconds=2)
        return child

    def wait_until(
        self, condition: Callable[[], bool], timeout_seconds: float | None, *, ask: float = 1.0
    ) -> bool:
        """Run the event loop until `condition()` is True; return False on a timeout.

        The condition is checked every `ask` seconds. Raises `StopRequested` on a signal, and
        `CannotRun` if a child dies too often.
        """
        deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        while not condition():
            if deadline is not None and time.monotonic() >= deadline:
                return False
            self._run_iteration(ask)
        return True

    def stop(self, children: Iterable[Child], grace_seconds: float, *, tell: bool = True) -> None:
        """End `children` for good: send their stop signals, and kill them after `grace_seconds`.

        Without `tell`, no signals are sent, because the children got one already.
        """
        children = list(children)
        was_stopping, self._stopping = self._stopping, True
        for child in children:
            child.start_at = None
            if tell:
                child.send(child.spec.stop_signal)
        self._run_while_alive(children, grace_seconds)
        for child in children:
            if child.is_alive:
                self.terminal.say(f"{child.spec.name} did not stop in time and was killed")
                child.kill_group()
        self._run_while_alive(children, 2.0)
        self._supervised = [child for child in self._supervised if child not in children]
        self._stopping = was_stopping

    def _run_while_alive(self, children: list[Child], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while any(child.is_alive for child in children) and time.monotonic() < deadline:
            self._run_iteration(0.05)

    def _run_iteration(self, max_seconds: float) -> None:
        self._select(min(max_seconds, _IDLE_SECONDS, self._seconds_until_start()))
        self._reap()
        if self.stop_signal is not None and not self._stopping:
            raise StopRequested
        self._start_due()

    def _select(self, seconds: float) -> None:
        self.terminal.write_waiting()
        if self.terminal.has_waiting:
            seconds = min(seconds, 0.05)
        for key, _ in self._selector.select(seconds):
            child = key.data
            if child is None:
                with contextlib.suppress(BlockingIOError):
                    self._awake.recv(4096)
            elif not child.read(key.fd):
                self._selector.unregister(key.fd)
                child.close_stream(key.fd)

    def _seconds_until_start(self) -> float:
        times = [child.start_at for child in self._supervised if child.start_at is not None]
        return max(0.0, min(times) - time.monotonic()) if times else _IDLE_SECONDS

    def _start_due(self) -> None:
        now = time.monotonic()
        for child in self._supervised:
            if child.start_at is None or child.start_at > now:
                continue
            if self._is_prepared(child):
                self._start(child)
            else:
                child.start_at = max(child.start_at, now + _POLL_SECONDS)

    def _is_prepared(self, child: Child) -> bool:
        if child.repairing is not None and child.repairing.is_alive:
            return False
        try:
            return child.spec.prepare()
        except OSError as error:
            child.started_at = time.monotonic()
            self._plan_restart(child, f"can't be started: {error}")
            return False

    def _start(self, child: Child) -> None:
        try:
            child.start(time.monotonic())
        except CannotRun as failure:
            if child not in self._supervised:
                raise
            self._plan_restart(child, str(failure))
            return
        if child.pid is not None:
            self._running[child.pid] = child
        for descriptor in child.streams:
            self._selector.register(descriptor, selectors.EVENT_READ, child)

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                child = self._running.pop(ended[0], None)
                if child is not None:  # Otherwise an adopted orphan ended.
                    self._handle_end(child, os.waitstatus_to_exitcode(ended[1]))

    def _handle_end(self, child: Child, exit_code: int) -> None:
        child.finish(exit_code)
        for descriptor in child.streams:
            self._selector.unregister(descriptor)
        child.close_streams()
        if child in self._supervised and not self._stopping and self.stop_signal is None:
            self._plan_restart(child, child.describe_end())

    def _plan_restart(self, child: Child, end: str) -> None:
        now = time.monotonic()
        delay = child.restarts.delay_seconds(now - child.started_at)
        name, deaths = child.spec.name, child.restarts.quick_in_a_row
        is_logged = child.tail and not child.has_lost_lines
        where = f"; its output is in {child.spec.log}" if child.spec.log and is_logged else ""
        if child.restarts.is_failing:
            why = (
                f"{name} stopped {deaths} times in a row within {QUICK_DEATH_SECONDS:g} s of its"
                f" start ({end}). Its last lines:{child.format_tail()}"
            )
            if self.may_give_up() and not child.spec.optional:
                raise CannotRun(why)
            if deaths % _DEATHS_BETWEEN_REASONS == QUICK_DEATHS_ALLOWED:
                self.terminal.say(f"{why}\nContinuing, and retrying {name}.")
        else:
            self.terminal.say(f"{name} stopped ({end}); restarting it in {delay:g} s{where}")
        child.start_at = now + delay
        repair = child.spec.repair(child)
        if repair is not None:
            child.repairing = self.launch(repair)

    def _new(self, spec: ChildSpec) -> Child:
        if spec.log is not None:
            log = self._logs.setdefault(spec.log, RotatingFile(spec.log, say=self.terminal.say))
            return Child(spec, partial(self._write_log, spec, log))
        return Child(spec, partial(self.terminal.pass_on, spec.name))

    def _write_log(self, spec: ChildSpec, log: RotatingFile, line: bytes) -> bool:
        is_shared = spec.log is not None and spec.log.stem != spec.name
        needs_name = is_shared and not line.startswith(b"{")  # JSON remains JSON.
        is_written = log.write_line(add_name(spec.name, line) if needs_name else line)
        shown = find_error(line) if is_written else line
        if shown is not None:
            self.terminal.pass_on(spec.name, shown)
        return is_written

    def _note_signal(self, signum: int, _frame: FrameType | None) -> None:
        self.stop_signal = self.stop_signal or signum

    def _kill_orphans(self) -> None:
        """Kill all remaining descendants, also those in sessions of their own."""
        own = Path(f"/proc/self/task/{os.getpid()}/children")  # Linux only.
        deadline = time.monotonic() + 1
        with contextlib.suppress(FileNotFoundError):
            while time.monotonic() < deadline and (remaining := own.read_text().split()):
                for pid in remaining:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(int(pid), signal.SIGKILL)
                self._reap()
                time.sleep(0.01)
