"""A client that fetches snapshots from the console and applies valid and newer ones."""

import contextlib
import time
from collections.abc import Iterator

from switchgear.console.address import Address
from switchgear.console.errors import RequestFailed
from switchgear.console.event_stream import EventStreamParser, EventTooLarge, ServerSentEvent
from switchgear.console.signatures import HEADER, InvalidSignature, make_parser
from switchgear.console.timings import Timings
from switchgear.console.transport import Connection, Response, Stream, update_clock
from switchgear.evaluation.snapshot import MAX_SERVED_BYTES, InvalidSnapshot, Snapshot
from switchgear.evaluation.snapshot_store import SnapshotStore
from switchgear.settings import Settings

SNAPSHOT_PATH, STREAM_PATH = "/api/v1/snapshot", "/api/v1/snapshot/stream"
EVENT_NAME = "snapshot"
MAX_ETAG_LENGTH = 200
MAX_EPOCH_STEP_SECONDS = 3600.0
"""Longest time by which the database's clock may be behind when a new epoch begins."""
MAX_PUSH_SECONDS = 2.0
"""Longest time from the publication of a version to its arrival by a stream or held poll."""
MAX_IDLE_BYTES, IDLE_WINDOW_SECONDS = 2**16, 60.0
"""Limit of bytes without content (comments, unknown events) per window of a stream."""
MAX_SKIP_SECONDS = 0.05
"""Longest time that snapshots are skipped while newer ones are already buffered."""
TRANSIENT_STATUSES = frozenset({401, 403, 408, 429, *range(500, 600)} - {501, 505})
"""Statuses after which the stream is retried soon; after others it is given up for a while."""


class ModeUnavailable(RequestFailed):
    """Raised if a follow mode does not work, such as a stream behind a buffering proxy."""


class SnapshotClient:
    """A client that fetches and applies snapshots. Not thread-safe, except for `abort`."""

    def __init__(self, settings: Settings, store: SnapshotStore, timings: Timings) -> None:
        self._connection = Connection(Address.parse(settings.url or ""), settings.token)
        self._name = settings.name
        self._store = store
        self._timings = timings
        self._parse = make_parser(settings.public_keys)
        self._is_verified = settings.public_keys is not None
        self._etag: tuple[str | None, Snapshot | None] = None, None
        """The ETag of the latest answer, and the snapshot that it belongs to."""
        self._is_outdated = False
        """True if the latest answer is older than the snapshot in force."""
        self._confirmed_at: float | None = None
        """Time at which the console last confirmed or sent the current snapshot; monotonic."""
        self.abort = self._connection.abort
        self.close = self._connection.close
        self.close_in_child = self._connection.close_in_child
        self.hint_seconds: float | None = None
        """The reconnection delay that the latest stream requested, if any."""
        self.has_other_orders = False
        """True if the latest answer differs from the snapshot in force, but changes nothing.

        Then data planes behind the console's address know different emergency orders or versions.
        """

    def fetch(self, hold_seconds: int = 0) -> bool:
        """Fetch the current snapshot and return True if it differs from the one in force.

        The console may hold the request for `hold_seconds` until there is a newer snapshot. Raise
        :class:`RequestFailed`.
        """
        headers = self._headers()
        etag, of_snapshot = self._etag
        if of_snapshot is not self._store.snapshot:
            etag = None
        mark = self._store.view.mark or ""
        if etag is not None:
            # Another data plane may know orders that the one of the ETag does not.
            is_merged = self._store.view.orders.hash and mark not in etag
            headers["If-None-Match"] = f'{etag}, "{mark}"' if is_merged else etag
        path = f"{SNAPSHOT_PATH}?wait={hold_seconds}" if hold_seconds else SNAPSHOT_PATH
        seconds = self._timings.answer + hold_seconds
        response = self._connection.request(
            "GET", path, headers, seconds=seconds, max_bytes=MAX_SERVED_BYTES
        )
        if response.status == 304 and etag is None:
            raise RequestFailed("unexpected 304 response", status=304)
        response.expect(200, 304)
        self.has_other_orders = False
        news = False
        if response.status == 200:
            signature = response.headers.get(HEADER, "")
            news = self._apply(response.body, signature, is_pushed=hold_seconds > 0)
        elif etag is not None:
            self._renew_orders(etag, mark, response.headers.get("etag", ""))
        self._confirmed_at = response.sent_at - _age_seconds(response)
        update_clock(self._store.clock, response)
        if response.status == 200 and not self._is_outdated:
            latest = response.headers.get("etag", "")
            is_usable = 2 < len(latest) <= MAX_ETAG_LENGTH and latest.isascii()
            is_usable = is_usable and latest.isprintable()
            self._etag = latest if is_usable else None, self._store.snapshot
        return news

    def stream(self) -> Iterator[bool]:
        """Follow the event stream; for each piece received, yield True if a new snapshot came.

        The iterator never ends normally. It raises :class:`RequestFailed` when the stream is lost,
        or :class:`ModeUnavailable` if streams do not get through.
        """
        self.hint_seconds = None
        headers = {**self._headers(), "Accept": "text/event-stream", "Cache-Control": "no-cache"}
        if (mark := self._store.view.mark) is not None:
            headers["Last-Event-ID"] = mark
        try:
            stream = self._connection.stream(STREAM_PATH, headers, self._timings.answer)
        except RequestFailed as failed:
            if failed.status is None or failed.status in TRANSIENT_STATUSES:
                raise
            raise ModeUnavailable(failed.why, failed.retry_after, failed.status) from None
        with stream:
            kind = stream.headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind != "text/event-stream":
                raise ModeUnavailable("the response is not an event stream")
            update_clock(self._store.clock, stream)
            yield from self._events(stream)

    def _events(self, stream: Stream) -> Iterator[bool]:
        parser = EventStreamParser()
        within_since = idle_since = taken_at = time.monotonic()
        latest: ServerSentEvent | None = None
        piece = self._read_first_piece(stream)
        while piece:
            now = time.monotonic()
            if not parser.is_within:
                within_since = now
            try:
                events = parser.feed(piece)
            except EventTooLarge:
                raise RequestFailed("an event in the stream is too long") from None
            self.hint_seconds = parser.retry_seconds
            snapshots = [event for event in events if event.name == EVENT_NAME]
            latest = snapshots[-1] if snapshots else latest
            # Skip to the latest of several buffered snapshots.
            is_due = now - taken_at > MAX_SKIP_SECONDS or not stream.has_more()
            if latest is not None and is_due:
                news = self._apply(latest.data, latest.signature, is_pushed=True)
                latest, taken_at = None, now
                yield news
            else:
                yield False
            self._confirmed_at = now
            parser.idle_bytes += sum(
                len(event.data) for event in events if event.name != EVENT_NAME
            )
            if now - idle_since > IDLE_WINDOW_SECONDS:
                parser.idle_bytes, idle_since = 0, now
            if parser.idle_bytes > MAX_IDLE_BYTES:
                raise RequestFailed("too much data in the stream without a snapshot")
            if events:
                within_since = now
            if parser.is_within and now - within_since > self._timings.event:
                raise RequestFailed("the stream is too slow")
            piece = stream.read(self._timings.silence)
        raise RequestFailed("the stream has ended")

    def _read_first_piece(self, stream: Stream) -> bytes:
        """Return the first piece of `stream`; raise :class:`ModeUnavailable` if none arrives."""
        began = time.monotonic()
        try:
            return stream.read(self._timings.silence)
        except RequestFailed as failed:
            if time.monotonic() - began < self._timings.silence:
                raise
            raise ModeUnavailable(f"the stream is blocked on the way: {failed.why}") from None

    def _apply(self, document: bytes, signature: str, *, is_pushed: bool) -> bool:
        """Put a snapshot in force, or its open emergency orders if it is older than the present.

        Return True if that changed something. Raise :class:`RequestFailed` for an invalid snapshot
        or signature, and for an older one without orders.
        """
        before = self._store.view
        present = before.snapshot
        self._is_outdated = False
        if self._store.confirm(document):
            return False
        try:
            before_entries = {} if present is None else present.entries
            snapshot = self._parse(document, signature, before_entries)
        except InvalidSignature as error:
            raise RequestFailed(str(error)) from None
        except InvalidSnapshot as error:
            raise RequestFailed(f"invalid snapshot: {error}") from None
        if self._is_verified and _is_replayed(snapshot, present):
            raise RequestFailed("outdated snapshot: its epoch was published before the present one")
        self._is_outdated = not self._store.accept(snapshot)
        after = self._store.view
        has_news = after.mark != before.mark or after.entries != before.entries
        if self._is_outdated:
            # A data plane that is behind may still serve orders that no other one knows.
            is_same_epoch = present is not None and snapshot.epoch == present.epoch
            if not has_news and not (is_same_epoch and snapshot.open_orders):
                raise RequestFailed("outdated snapshot")
        else:
            self._update_clock_by_version(present, snapshot, is_pushed)
        self.has_other_orders = not has_news
        return has_news

    def _renew_orders(self, etag: str, mark: str, answered: str) -> None:
        """Renew the orders that a data plane lists, by the ETag that it has `answered` with a 304.

        A data plane that is behind, and lists no orders, answers with an ETag of its own.
        """
        current = _strip_etag(answered)
        if current == mark:
            self._store.renew_orders(is_all=True)
        elif current == _strip_etag(etag):
            self._store.renew_orders(is_all=False)

    def _headers(self) -> dict[str, str]:
        headers = {"Switchgear-Instance": self._name}
        if (mark := self._store.view.mark) is not None:
            headers["Switchgear-Applied"] = mark
        return headers

    def _update_clock_by_version(
        self, before: Snapshot | None, after: Snapshot, is_pushed: bool
    ) -> None:
        """Limit the console's clock by the maximum age of the new snapshot `after`.

        The maximum age is the time since `before`, the previous snapshot, was last confirmed; for a
        pushed snapshot at most `MAX_PUSH_SECONDS`. Without a comparable `before` there is no limit.
        """
        if before is None or after.epoch != before.epoch or after.version <= before.version:
            return
        if self._confirmed_at is not None and after.published_at is not None:
            since = time.monotonic() - self._confirmed_at
            if is_pushed:
                since = min(since, MAX_PUSH_SECONDS)
            self._store.clock.limit_by_version(after.published_at, since)


def _is_replayed(snapshot: Snapshot, present: Snapshot | None) -> bool:
    """Return True if another epoch's `snapshot` was published long before the `present` one.

    A signed snapshot of an epoch that this client never knew could be replayed, and would make the
    client refuse the console's epoch from then on.
    """
    if present is None or snapshot.epoch == present.epoch or present.published_at is None:
        return False
    since = present.published_at - (snapshot.published_at or 0.0)
    return since > MAX_EPOCH_STEP_SECONDS


def _strip_etag(etag: str) -> str:
    """Return the mark in an ETag."""
    return etag.removeprefix("W/").strip('"').removesuffix("-gzip")


def _age_seconds(response: Response) -> float:
    """Return the seconds in the header `Switchgear-Age` of a response; 0 without it."""
    with contextlib.suppress(ValueError):
        return max(0.0, min(float(response.headers.get("switchgear-age", "")), 1e9))
    return 0.0
