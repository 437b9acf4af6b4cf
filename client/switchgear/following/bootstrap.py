"""The snapshot that a fresh process goes by until the console has answered.

It is a mapping, or comes from a file or a URL. Whatever is wrong with it is an error in the log,
and nothing else.
"""

import json
import logging
import os
import stat
import threading
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from switchgear.deciding.memory import Memory
from switchgear.deciding.snapshot import MOST_BYTES, read
from switchgear.following.failures import Failed
from switchgear.following.transport import Address, Connection

MAX_WAIT_SECONDS = 2.0
"""A start waits no longer for a URL."""
FETCH_SECONDS = 10.0
LOOK_SECONDS = 0.05
"""Between two looks whether the console was quicker."""

Source = Mapping[str, Any] | str | os.PathLike[str]
"""A snapshot as `GET /api/v1/snapshot` returns it, the path of a file with one, or its URL."""

log = logging.getLogger("switchgear")


class Bootstrap:
    """The bootstrap of one client. Without a `source` there is none. Raises :class:`TypeError` for
    a source of another type."""

    def __init__(self, source: Source | None, memory: Memory) -> None:
        if source is not None and not isinstance(source, Mapping | str | os.PathLike):
            raise TypeError(
                f"bootstrap must be a mapping, a path or a URL, not {type(source).__name__}"
            )
        self.problem: str | None = None
        """Why it is not used; None if nothing is wrong."""
        self._source = source
        self._memory = memory
        self._url = source if isinstance(source, str) and "://" in source else None
        self._is_stopped = False
        self._connection: Connection | None = None
        self._done = threading.Event()

    def load(self) -> None:
        """Put it in force, unless it has to be fetched. Never raises."""
        if self._source is None or self._url is not None:
            return
        name = "mapping"
        try:
            if isinstance(self._source, Mapping):
                document = json.dumps(self._source, default=_as_dict).encode()
            else:
                name = repr(os.fspath(self._source))
                document = _read_file(self._source)
            self._use(name, document)
        except Exception as error:  # The caller's objects raise what they like.
            self._complain(name, error)

    def start(self) -> None:
        """Fetch it from its URL, if it has one, once and by a thread of its own: to look up a name
        takes the time that it takes."""
        if self._url is None or self._done.is_set() or self._is_stopped:
            return
        thread = threading.Thread(target=self._run, name="switchgear-bootstrap", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            self._done.set()
            self._complain(_shown(self._url), error)

    def wait(self, heard: threading.Event) -> None:
        """Wait until it is in force, if nothing else is: for `MAX_WAIT_SECONDS`, and no longer than
        until the console is `heard`."""
        if self._url is None:
            return
        until = time.monotonic() + MAX_WAIT_SECONDS
        while self._memory.snapshot is None and not heard.is_set() and time.monotonic() < until:
            if self._done.wait(LOOK_SECONDS):
                return

    def stop(self) -> None:
        """End a fetch that goes on; returns at once."""
        self._is_stopped = True
        if (connection := self._connection) is not None:
            connection.abort()

    def after_fork(self) -> None:
        """In a child, which has not the thread: :meth:`start` fetches again what was not there."""
        is_done, self._done = self._done.is_set(), threading.Event()
        if is_done or self._memory.snapshot is not None:
            self._done.set()

    def _run(self) -> None:
        assert self._url is not None  # noqa: S101 - for the type.
        try:
            self._use(_shown(self._url), self._fetch(self._url))
        except (Failed, ValueError, RecursionError) as error:
            if not self._is_stopped:
                self._complain(_shown(self._url), error)
        finally:
            self._done.set()

    def _fetch(self, url: str) -> bytes:
        """No token goes with it, and no redirect is followed. Raises :class:`Failed`, and
        :class:`ValueError` for what is no URL of a file."""
        parts = urlsplit(url)
        if parts.username or parts.password or parts.scheme not in ("http", "https"):
            raise ValueError("a URL must be http or https, without credentials in it")
        whole = Address.of(url)
        address = Address(whole.scheme, whole.host, whole.port)
        connection = self._connection = Connection(address)
        if self._is_stopped:
            connection.abort()
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        try:
            answer = connection.request("GET", path, seconds=FETCH_SECONDS).expect(200)
        finally:
            connection.close()
        return answer.body

    def _use(self, name: str, document: bytes) -> None:
        snapshot = read(document)
        if self._memory.bootstrap(snapshot):
            log.info("switchgear: version %d of %s is the bootstrap", snapshot.version, name)

    def _complain(self, name: str, error: Exception) -> None:
        why = error.strerror if isinstance(error, OSError) else str(error)
        self.problem = f"the bootstrap {name} is not used: {why or type(error).__name__}"
        log.error("switchgear: %s", self.problem)


def _as_dict(value: object) -> dict[Any, Any]:
    """Return a mapping of another type as one that JSON knows."""
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a value is of type {type(value).__name__:.100}, which is not JSON")


def _read_file(path: str | os.PathLike[str]) -> bytes:
    """Return what is in a file, without waiting for a pipe that nobody writes to. Raises
    :class:`OSError` and :class:`ValueError`."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError("it is no file")
        return file.read(MOST_BYTES + 1)


def _shown(url: str) -> str:
    """A URL without what may be a secret: credentials, and the signature in a query."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.partition('?')[0].rpartition('@')[2]}"
