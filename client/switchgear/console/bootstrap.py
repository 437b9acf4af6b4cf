"""The snapshot that a new process uses until the console has answered.

It is a mapping, or comes from a file or a URL. An unusable bootstrap is logged as an error and has
no other effect.
"""

import json
import logging
import os
import stat
import threading
import time
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from switchgear.console.address import parse_file_url, redact_url
from switchgear.console.errors import RequestFailed
from switchgear.console.signatures import make_parser
from switchgear.console.transport import Connection
from switchgear.evaluation.signed_snapshot import parse_published_file
from switchgear.evaluation.snapshot import MAX_SERVED_BYTES, parse_snapshot
from switchgear.evaluation.snapshot_store import SnapshotStore

FETCH_SECONDS = 10.0
CHECK_SECONDS = 0.05
"""Interval at which :meth:`Bootstrap.wait` checks whether a snapshot is in force."""

BootstrapSource = Mapping[str, Any] | str | os.PathLike[str]
"""A snapshot as `GET /api/v1/snapshot` returns it, the path of a file with one, or its URL."""

log = logging.getLogger("switchgear")


class Bootstrap:
    """The optional initial snapshot of one client, from a mapping, a file or a URL.

    With `public_keys` it must be a published file (:class:`PublishedFile`), which is verified.
    Raise :class:`TypeError` for any other `source`.
    """

    def __init__(
        self,
        source: BootstrapSource | None,
        store: SnapshotStore,
        public_keys: Iterable[str] | None = None,
    ) -> None:
        if source is not None and not isinstance(source, Mapping | str | os.PathLike):
            raise TypeError(
                f"bootstrap must be a mapping, a path or a URL, not {type(source).__name__}"
            )
        self.problem: str | None = None
        """The reason why the bootstrap is not used; None without a problem."""
        self._source = source
        self._store = store
        self._public_keys = public_keys
        self._url = source if isinstance(source, str) and "://" in source else None
        self._is_stopped = False
        self._connection: Connection | None = None
        self._done = threading.Event()

    def load(self) -> None:
        """Put a snapshot from a mapping or a file in force. Never raises."""
        if self._source is None or self._url is not None:
            return
        name = "mapping"
        try:
            if isinstance(self._source, Mapping):
                document = json.dumps(self._source, default=_as_dict).encode()
            else:
                name = repr(os.fspath(self._source))
                document = _read_file(self._source)
            self._apply(name, document)
        except Exception as error:  # The caller's objects may raise anything.
            self._log_problem(name, error)

    def start(self) -> None:
        """Start a thread that fetches the snapshot from its URL once. Never raises."""
        if self._url is None or self._done.is_set() or self._is_stopped:
            return
        thread = threading.Thread(target=self._run, name="switchgear-bootstrap", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            self._done.set()
            self._log_problem(redact_url(self._url), error)

    def wait(self, synced: threading.Event, seconds: float) -> None:
        """Wait until there is a snapshot, the fetch has ended, or the console has answered.

        The event `synced` is set when the console answers. Wait for at most `seconds`.
        """
        if self._url is None:
            return
        until = time.monotonic() + seconds
        while self._store.snapshot is None and not synced.is_set() and time.monotonic() < until:
            if self._done.wait(CHECK_SECONDS):
                return

    def age_seconds(self) -> float | None:
        """Return the seconds since the bootstrap was published; None if it is not in force."""
        snapshot = self._store.snapshot
        if snapshot is None or snapshot.published_at is None or not self._store.is_bootstrapped:
            return None
        return max(0.0, self._store.clock.now() - snapshot.published_at)

    def stop(self) -> None:
        """Abort a running fetch. Returns at once."""
        self._is_stopped = True
        if (connection := self._connection) is not None:
            connection.abort()

    def after_fork(self) -> None:
        """Reset the threading state in a forked child.

        After that, :meth:`start` repeats a fetch that the fork interrupted.
        """
        is_done, self._done = self._done.is_set(), threading.Event()
        if is_done or self._store.snapshot is not None:
            self._done.set()

    def _run(self) -> None:
        assert self._url is not None  # noqa: S101 - for the type.
        try:
            self._apply(redact_url(self._url), self._fetch(self._url))
        except (RequestFailed, ValueError, RecursionError) as error:
            if not self._is_stopped:
                self._log_problem(redact_url(self._url), error)
        finally:
            self._done.set()

    def _fetch(self, url: str) -> bytes:
        """Fetch the snapshot document without a token and without following redirects.

        Raise :class:`RequestFailed`, or :class:`ValueError` for an invalid URL.
        """
        parts = urlsplit(url)
        if parts.username or parts.password or parts.scheme not in ("http", "https"):
            raise ValueError("the URL must be http or https, without credentials")
        address, path = parse_file_url(url)
        connection = self._connection = Connection(address)
        if self._is_stopped:
            connection.abort()
        try:
            answer = connection.request("GET", path, seconds=FETCH_SECONDS).expect(200)
        finally:
            connection.close()
        return answer.body

    def _apply(self, name: str, document: bytes) -> None:
        if self._public_keys is None:
            snapshot = parse_snapshot(document)
        else:
            file = parse_published_file(document)
            snapshot = make_parser(self._public_keys)(file.document, file.signature, {})
        if self._store.bootstrap(snapshot):
            log.info("switchgear: bootstrapped with version %d from %s", snapshot.version, name)

    def _log_problem(self, name: str, error: Exception) -> None:
        why = error.strerror if isinstance(error, OSError) else str(error)
        self.problem = f"bootstrap {name} ignored: {why or type(error).__name__}"
        log.error("switchgear: %s", self.problem)


def _as_dict(value: object) -> dict[Any, Any]:
    """Convert a mapping for the JSON encoder; raise :class:`TypeError` for any other value."""
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a value is of type {type(value).__name__:.100}, which is not JSON")


def _read_file(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a regular file. Raise :class:`OSError` or :class:`ValueError`."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError("not a regular file")
        return file.read(MAX_SERVED_BYTES + 1)
