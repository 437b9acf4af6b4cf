"""Inflicts the plan's faults on a running installation and two further processes."""

import contextlib
import os
import resource
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

import psycopg
import redis

from controlplane.dataplane.tests.lines import Line
from controlplane.dataplane.tests.processes import Server
from controlplane.dataplane.tests.test_faults_clock import Clock
from controlplane.tests.chaos.plan import MAX_CLOCK_ERROR_SECONDS, Fault
from controlplane.tests.installation import Installation

WORDS: Mapping[str, tuple[str, ...]] = {
    "web": ("granian",),
    "worker": ("celery", " worker "),
    "beat": ("celery", " beat "),
    "watchdog": ("watchdog",),
    "postgresql": ("postgres",),
    "redis": ("redis-server",),
}
START_SECONDS = 120.0
CLIENT_SECONDS = 5
COMMIT = b"COMMIT\0"
"""The end of PostgreSQL's message for a commit."""
AUDITED = b'INSERT INTO "core_auditentry"'
"""Statement that identifies a change's connection; others aren't cut."""
END_SESSIONS = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE usename = current_user AND pid <> pg_backend_pid()"
)


class Missed(Exception):
    """The target of the fault was gone, because an earlier fault had ended it."""


@dataclass
class Stage:
    """The processes that faults are inflicted on.

    A second console and a data plane reach PostgreSQL by lines of their own, and Redis by one that
    they share; the data plane has a clock of its own.
    """

    installation: Installation
    console: Server
    commits: Line
    plane: Server
    database: Line
    redis: Line
    clock: Clock

    def inflict(self, fault: Fault) -> None:
        """Return when the fault is over. Raises :class:`Missed`."""
        place, _, act = fault.kind.partition(".")
        acts: Mapping[str, Callable[[], AbstractContextManager[None]]] = {
            "console.kill": lambda: _restarted(self.console),
            "console.cut_before_commit": lambda: _commits_cut(self.commits, "cut_before"),
            "console.cut_after_commit": lambda: _commits_cut(self.commits, "cut_after"),
            "plane.kill": lambda: _restarted(self.plane),
            "plane.freeze": self._plane_frozen,
            "plane.clock": lambda: self._clock_wrong(fault.choice),
            "plane.disk_full": lambda: _disk_full(self._plane_pids()),
            "plane.database_cut": lambda: _cut(self.database),
            "plane.database_freeze": lambda: _line_frozen(self.database),
            "redis.cut": lambda: _cut(self.redis),
            "postgresql.kill": lambda: self._killed("postgres", "-D"),
            "postgresql.backend_kill": lambda: self._backend(signal.SIGKILL, fault.choice),
            "postgresql.backend_freeze": lambda: self._backend(signal.SIGSTOP, fault.choice),
            "postgresql.sessions_end": self._sessions_ended,
            "redis.flush": self._redis_flushed,
            "redis.clients_kill": self._redis_clients_killed,
            "supervisor.kill": self._supervisor_killed,
            "supervisor.freeze": self._supervisor_frozen,
            "web.disk_full": lambda: _disk_full(self._pids("granian")),
        }
        if fault.kind in acts:
            inflicted = acts[fault.kind]()
        elif act == "kill":
            inflicted = self._killed(*WORDS[place])
        else:
            inflicted = self._frozen(*WORDS[place])
        with inflicted:
            time.sleep(fault.seconds)

    def _pids(self, *words: str) -> list[int]:
        tree = self.installation.tree()
        found = [pid for pid, line in tree.items() if all(word in line for word in words)]
        if not found:
            raise Missed(f"no process {words}")
        return sorted(found)

    @contextmanager
    def _killed(self, *words: str) -> Iterator[None]:
        for pid in self._pids(*words):
            _send(pid, signal.SIGKILL)
        yield

    @contextmanager
    def _frozen(self, *words: str) -> Iterator[None]:
        with _stopped(self._pids(*words)):
            yield

    @contextmanager
    def _supervisor_killed(self) -> Iterator[None]:
        process = self.installation.process
        assert process is not None
        process.kill()
        process.wait(10)
        self.installation.start()
        self.lead_lines()
        yield

    def lead_lines(self) -> None:
        """Point the lines at the ports that PostgreSQL and Redis have in this run."""
        found = self.installation.services()
        for line, name in (
            (self.commits, "database_url"),
            (self.database, "database_url"),
            (self.redis, "redis_url"),
        ):
            line.lead_to(urlsplit(found[name]).port or 0)

    @contextmanager
    def _supervisor_frozen(self) -> Iterator[None]:
        assert self.installation.process is not None
        with _stopped([self.installation.process.pid]):
            yield

    @contextmanager
    def _backend(self, number: signal.Signals, choice: float) -> Iterator[None]:
        """Disturb one database session of the application, which may hold any lock."""
        sessions = self._pids("postgres:", "switchgear_app")
        pid = sessions[int(choice * len(sessions))]
        with contextlib.ExitStack() as undo:
            if number == signal.SIGSTOP:
                undo.enter_context(_stopped([pid]))
            else:
                _send(pid, number)
            yield

    @contextmanager
    def _sessions_ended(self) -> Iterator[None]:
        url = self.installation.services()["database_url"]
        with _reached(), psycopg.connect(url, connect_timeout=CLIENT_SECONDS) as database:
            database.execute(END_SESSIONS)
        yield

    @contextmanager
    def _redis_flushed(self) -> Iterator[None]:
        with _reached(), _redis_client(self.installation.services()["redis_url"]) as store:
            store.flushall()
        yield

    @contextmanager
    def _redis_clients_killed(self) -> Iterator[None]:
        with _reached(), _redis_client(self.installation.services()["redis_url"]) as store:
            for kind in ("normal", "pubsub"):
                store.execute_command("CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes")
        yield

    def _plane_pids(self) -> list[int]:
        assert self.plane.process is not None
        return [self.plane.process.pid, *self.plane.workers()]

    @contextmanager
    def _plane_frozen(self) -> Iterator[None]:
        with _stopped(self._plane_pids()):
            yield

    @contextmanager
    def _clock_wrong(self, choice: float) -> Iterator[None]:
        self.clock.set((2 * choice - 1) * MAX_CLOCK_ERROR_SECONDS)
        try:
            yield
        finally:
            self.clock.set(0)


@contextmanager
def _restarted(server: Server) -> Iterator[None]:
    server.kill()
    yield
    server.start(ready_within=START_SECONDS)


@contextmanager
def _commits_cut(line: Line, when: str) -> Iterator[None]:
    line.cut_once_sent = AUDITED
    setattr(line, when, COMMIT)
    try:
        yield
    finally:
        setattr(line, when, b"")


@contextmanager
def _stopped(pids: list[int]) -> Iterator[None]:
    for pid in pids:
        _send(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            _send(pid, signal.SIGCONT)


@contextmanager
def _disk_full(pids: list[int]) -> Iterator[None]:
    """Make all file writes fail, through the kernel's limit on file size."""
    changed = []
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, before[1]))
            changed.append((pid, before))
    try:
        yield
    finally:
        for pid, before in changed:
            with contextlib.suppress(ProcessLookupError):
                resource.prlimit(pid, resource.RLIMIT_FSIZE, before)


@contextmanager
def _cut(line: Line) -> Iterator[None]:
    line.cut()
    try:
        yield
    finally:
        line.mend()


@contextmanager
def _line_frozen(line: Line) -> Iterator[None]:
    line.freeze()
    try:
        yield
    finally:
        line.thaw()


@contextmanager
def _reached() -> Iterator[None]:
    try:
        yield
    except (OSError, psycopg.OperationalError, redis.RedisError) as error:
        raise Missed(repr(error)) from error


def _redis_client(url: str) -> redis.Redis:
    return redis.Redis.from_url(
        url, socket_timeout=CLIENT_SECONDS, socket_connect_timeout=CLIENT_SECONDS
    )


def _send(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
