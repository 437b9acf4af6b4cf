"""Asks the console which switches are not released, and takes over what can be believed."""

import contextlib
import time
from collections.abc import Iterator

from switchgear.evaluation.snapshot import InvalidSnapshot, Snapshot, read
from switchgear.evaluation.snapshot_store import Memory
from switchgear.following.events import EndlessEvent, Parser
from switchgear.following.failures import Failed
from switchgear.following.patience import Patience
from switchgear.following.transport import Address, Connection, Response, Stream
from switchgear.settings import Settings

SNAPSHOT, STREAM = "/api/v1/snapshot", "/api/v1/snapshot/stream"
EVENT = "snapshot"
MAX_ETAG_LENGTH = 200
TELLING_SECONDS = 5.0
"""An answer that took longer was held back, and its time says little about its middle."""
PUSHED_SECONDS = 2.0
"""Longest time between the publication of a version and its arrival by a stream or a held poll."""
MAX_IDLE_BYTES, IDLE_SECONDS = 2**16, 60.0
"""What a stream may say in such a time without saying anything."""
SKIP_SECONDS = 0.05
"""As long as there is something newer to be read, a snapshot is left aside; but no longer."""
PASSING_STATUSES = frozenset({401, 403, 408, 429, *range(500, 600)} - {501, 505})
"""With these a stream is refused for now; with others it is no use to try again soon."""


class Unfit(Failed):
    """This way to follow does not work here, as far as can be seen."""


class Asker:
    """Of one thread, but for :meth:`abort`."""

    def __init__(self, settings: Settings, memory: Memory, patience: Patience) -> None:
        self._connection = Connection(Address.of(settings.url or ""), settings.token)
        self._name = settings.name
        self._memory = memory
        self._patience = patience
        self._etag: tuple[str, Snapshot] | None = None
        self._confirmed_at: float | None = None
        """Time of the last answer that had nothing newer, on the monotonic clock."""
        self.abort = self._connection.abort
        self.close = self._connection.close
        self.forsake = self._connection.forsake
        self.hint_seconds: float | None = None
        """When to come back after the latest stream has ended, if it said so."""

    def ask(self, hold_seconds: int = 0) -> bool:
        """Make sure of the present snapshot; whether it is another one now. `hold_seconds`: the
        answer may wait that long for news. Raises :class:`Failed`."""
        headers = self._headers()
        etag = self._present_etag()
        if etag is not None:
            headers["If-None-Match"] = etag
        path = f"{SNAPSHOT}?wait={hold_seconds}" if hold_seconds else SNAPSHOT
        seconds = self._patience.answer + hold_seconds
        response = self._connection.request("GET", path, headers, seconds=seconds)
        if response.status == 304 and etag is None:
            raise Failed("it answers 304, unasked", status=304)
        response.expect(200, 304)
        news = response.status == 200 and self._take(response.body, is_pushed=hold_seconds > 0)
        self._confirmed_at = response.asked - _age_seconds(response)
        self._hear_time(response)
        if response.status == 200:
            self._keep_etag(response.headers.get("etag", ""))
        return news

    def listen(self) -> Iterator[bool]:
        """Follow a stream: at each sign of life, whether there is another snapshot now. It ends by
        :class:`Failed` in any case, :class:`Unfit` if streams do not get through here."""
        self.hint_seconds = None
        headers = {**self._headers(), "Accept": "text/event-stream", "Cache-Control": "no-cache"}
        if self._memory.snapshot is not None:
            headers["Last-Event-ID"] = self._memory.snapshot.mark
        try:
            stream = self._connection.stream(STREAM, headers, self._patience.answer)
        except Failed as failed:
            if failed.status is None or failed.status in PASSING_STATUSES:
                raise
            raise Unfit(failed.why, failed.retry_after, failed.status) from None
        with stream:
            kind = stream.headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind != "text/event-stream":
                raise Unfit("its stream is none of events")
            self._hear_time(stream)
            yield from self._events(stream)

    def _events(self, stream: Stream) -> Iterator[bool]:
        parser = Parser()
        within_since = idle_since = taken_at = time.monotonic()
        latest: bytes | None = None
        piece = self._first_of(stream)
        while piece:
            now = time.monotonic()
            if not parser.is_within:
                within_since = now
            try:
                events = parser.feed(piece)
            except EndlessEvent:
                raise Failed("its stream has an event without an end") from None
            self.hint_seconds = parser.retry_seconds
            told = [event.data for event in events if event.name == EVENT]
            latest = told[-1] if told else latest
            # Of several that are here already, only the latest still counts.
            is_due = now - taken_at > SKIP_SECONDS or not stream.has_more()
            if latest is not None and is_due:
                news, latest, taken_at = self._take(latest, is_pushed=True), None, now
                yield news
            else:
                yield False
            self._confirmed_at = now
            parser.idle_bytes += sum(len(event.data) for event in events if event.name != EVENT)
            if now - idle_since > IDLE_SECONDS:
                parser.idle_bytes, idle_since = 0, now
            if parser.idle_bytes > MAX_IDLE_BYTES:
                raise Failed("its stream says much and nothing")
            if events:
                within_since = now
            if parser.is_within and now - within_since > self._patience.event:
                raise Failed("its stream is too slow")
            piece = stream.read(self._patience.silence)
        raise Failed("its stream has ended")

    def _first_of(self, stream: Stream) -> bytes:
        """A stream says something at once, unless something on the way waits for its end."""
        began = time.monotonic()
        try:
            return stream.read(self._patience.silence)
        except Failed as failed:
            if time.monotonic() - began < self._patience.silence:
                raise
            raise Unfit(f"its stream is held back: {failed.why}") from None

    def _take(self, document: bytes, *, is_pushed: bool) -> bool:
        present = self._memory.snapshot
        if self._memory.confirm(document):
            return False
        try:
            snapshot = read(document, {} if present is None else present.entries)
        except InvalidSnapshot as error:
            raise Failed(f"its snapshot is refused: {error}") from None
        if not self._memory.accept(snapshot):
            raise Failed("its snapshot is from the past")
        self._hear_version(present, snapshot, is_pushed)
        return True

    def _headers(self) -> dict[str, str]:
        headers = {"Switchgear-Instance": self._name}
        if self._memory.snapshot is not None:
            headers["Switchgear-Applied"] = self._memory.snapshot.mark
        return headers

    def _present_etag(self) -> str | None:
        """That of the document in force, and of no other."""
        if self._etag is None or self._etag[1] is not self._memory.snapshot:
            return None
        return self._etag[0]

    def _keep_etag(self, etag: str) -> None:
        snapshot = self._memory.snapshot
        sane = 2 < len(etag) <= MAX_ETAG_LENGTH and etag.isascii() and etag.isprintable()
        self._etag = (etag, snapshot) if sane and snapshot is not None else None

    def _hear_version(self, before: Snapshot | None, after: Snapshot, is_pushed: bool) -> None:
        """Record when a version that follows one in force was published at the earliest.

        That is when the version in force was last confirmed, or just now for a pushed one.
        """
        if before is None or after.epoch != before.epoch or after.version <= before.version:
            return
        if self._confirmed_at is not None and after.published_at is not None:
            since = time.monotonic() - self._confirmed_at
            if is_pushed:
                since = min(since, PUSHED_SECONDS)
            self._memory.clock.heard_version(after.published_at, since)

    def _hear_time(self, answer: Response | Stream) -> None:
        took = answer.answered - answer.asked
        if took <= TELLING_SECONDS:
            self._memory.clock.heard(answer.headers, took, time.monotonic() - answer.answered)


def _age_seconds(response: Response) -> float:
    """Return the seconds since the database confirmed the answer; 0 if it does not say."""
    with contextlib.suppress(ValueError):
        return max(0.0, min(float(response.headers.get("switchgear-age", "")), 1e9))
    return 0.0
