"""A thread that reads a published snapshot from a file on the web while the console is down.

The file, in a CDN or an object store, is a last resort: it is read only after the console has
failed for a while. It changes nothing unless it is signed and newer than the snapshot in force.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from switchgear.console.address import parse_file_url, redact_url
from switchgear.console.errors import RequestFailed
from switchgear.console.file_cache import SnapshotCache
from switchgear.console.follower_thread import FollowerThread
from switchgear.console.signatures import InvalidSignature, make_parser
from switchgear.console.timings import Timings, poll_delay
from switchgear.console.transport import Connection
from switchgear.evaluation.signed_snapshot import PublishedFile, parse_published_file
from switchgear.evaluation.snapshot import MAX_SERVED_BYTES, InvalidSnapshot, Snapshot
from switchgear.evaluation.snapshot_store import SnapshotStore
from switchgear.settings import Settings

MAX_ETAG_LENGTH = 200

log = logging.getLogger("switchgear")


@dataclass(frozen=True)
class Primary:
    """The state of the client's way to the console, as functions.

    `down_seconds` returns the time for which all requests to the console have failed, 0.0 while
    they succeed. `confirm` records that the snapshot in force was confirmed some seconds ago, and
    if it is a new one.
    """

    down_seconds: Callable[[], float]
    confirm: Callable[[float, bool], None]


class FallbackFollower(FollowerThread):
    """A thread that puts newer snapshots of the file at `fallback_url` into `store`."""

    def __init__(
        self,
        settings: Settings,
        url: str,
        store: SnapshotStore,
        primary: Primary,
        timings: Timings,
    ) -> None:
        super().__init__("switchgear-fallback", store.clock, timings)
        address, self._path = parse_file_url(url)
        self._connection = Connection(address)
        self._url = redact_url(url)
        self._store, self._primary = store, primary
        self._cache = SnapshotCache(settings)
        self._parse = make_parser(settings.public_keys)
        self._etag = ""
        self.close_in_child = self._connection.close_in_child

    def stop(self) -> None:
        """Abort the running request and end the thread; return at once."""
        self._stopped.set()
        self._connection.abort()

    def _run(self) -> None:
        self._follow_until_stopped()
        self._connection.close()

    def _record_start_failure(self, error: RuntimeError) -> None:
        self.error = "can't start a thread"
        log.error("switchgear: the fallback URL will not be used: %s", error)

    def _follow_once(self) -> None:
        if self._primary.down_seconds() < self._timings.fallback_after:
            self.error, self._failures, self._is_warned = None, 0, False
            self._pause(self._timings.fallback_check)
            return
        self._fetch()
        self.error, self._failures, self._is_warned = None, 0, False
        if seconds := self._throttle.pause_seconds():
            self._pause(seconds)
        self._pause(poll_delay(self._timings.fallback_poll, self._draw))

    def _record_failure(self, error: RequestFailed) -> None:
        if self._stopped.is_set():
            return
        self._failures += 1
        self.error = error.why
        if self._may_warn():
            log.warning("switchgear: can't use the snapshot at %s: %s", self._url, error)
        self._pause_after(error, self._failures)

    def _fetch(self) -> None:
        """Fetch the file and put its snapshot in force if it is newer; may raise `RequestFailed`.

        The request has no token, and no redirect is followed.
        """
        headers = {"If-None-Match": self._etag} if self._etag else {}
        response = self._connection.request(
            *("GET", self._path, headers),
            seconds=self._timings.answer,
            max_bytes=MAX_SERVED_BYTES,
        ).expect(200, *([304] if self._etag else []))
        if response.status == 304:
            return
        self._etag = ""
        try:
            file = parse_published_file(response.body)
            self._apply(file)
        except InvalidSignature as error:
            raise RequestFailed(str(error)) from None
        except InvalidSnapshot as error:
            raise RequestFailed(f"invalid snapshot: {error}") from None
        etag = response.headers.get("etag", "")
        is_usable = len(etag) <= MAX_ETAG_LENGTH and etag.isascii() and etag.isprintable()
        self._etag = etag if is_usable else ""

    def _apply(self, file: PublishedFile) -> None:
        """Put the file's snapshot in force if it is newer; may raise :class:`InvalidSnapshot`."""
        present = self._store.snapshot
        before = {} if present is None else present.entries
        snapshot = self._parse(file.document, file.signature, before)
        age_seconds = max(0.0, self._store.clock.now() - file.confirmed_at)
        if present is not None and snapshot.mark == present.mark:
            self._primary.confirm(age_seconds, False)
            return
        is_newer = present is None or _is_newer(snapshot, present)
        if not is_newer or not self._store.accept(snapshot, is_live=False):
            raise InvalidSnapshot("It is outdated.")
        self._primary.confirm(age_seconds, True)
        log.warning("switchgear: version %d in force, from %s", snapshot.version, self._url)
        self._cache.save(self._store)


def _is_newer(snapshot: Snapshot, present: Snapshot) -> bool:
    """Return True if `snapshot` may replace the `present` one.

    A file may be left over from another epoch, so one of another epoch must be published later.
    """
    if snapshot.epoch == present.epoch:
        return snapshot.version > present.version
    published = snapshot.published_at, present.published_at
    return published[0] is not None and published[1] is not None and published[0] > published[1]
