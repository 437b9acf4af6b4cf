"""Threads that follow the console's policies and overrides for a service, by held (long) polls.

One daemon thread runs for each service whose policies are used, usually one. The last valid
document stays in force and on disk until a newer valid one arrives.
"""

import logging
import re
import time
from collections.abc import Callable
from typing import Protocol
from urllib.parse import quote

from switchgear.clock import ConsoleClock
from switchgear.console.address import Address
from switchgear.console.errors import RequestFailed
from switchgear.console.file_cache import CachedDocument, FileCache, UnusableFile, find_file_name
from switchgear.console.follower_thread import FollowerThread
from switchgear.console.snapshot_client import MAX_CLOCK_SAMPLE_SECONDS
from switchgear.console.timings import Timings, poll_delay
from switchgear.console.transport import Connection, Response
from switchgear.settings import Settings

CONFIG_PATH = "/api/v1/config"
MAX_BYTES = 2**22
POLL_SECONDS = 5.0
"""Pause between two polls of a console that does not hold them."""
PAUSE_JITTER_SECONDS = 0.2
"""Maximum pause after an answer, since the console answers all held polls at one moment."""
_ETAG = re.compile(r'"([\w.-]{1,100})\.c([0-9]{1,18})(?:-gzip)?"', re.ASCII)

log = logging.getLogger("switchgear")


class PolicyDocument(Protocol):
    """The latest policy document of a service; `epoch` is None before the first document."""

    @property
    def epoch(self) -> str | None: ...

    @property
    def left_epochs(self) -> tuple[str, ...]: ...

    @property
    def body(self) -> bytes: ...

    @property
    def version(self) -> int | None: ...


class PolicyStore(Protocol):
    """The store that puts policy documents in force.

    `accept` returns True for a new document and raises :class:`ValueError` for an invalid or
    outdated one. For a valid document `accept` calls `on_valid` before it reads the clock.
    """

    def accept(
        self,
        caller: str,
        epoch: str,
        body: bytes,
        left_epochs: tuple[str, ...] = (),
        *,
        on_valid: Callable[[], object],
    ) -> bool: ...

    def get_policies(self, caller: str) -> PolicyDocument: ...


class PolicyFollower(FollowerThread):
    """A thread that puts the policies for calls by the service `caller` into `store`."""

    def __init__(
        self,
        settings: Settings,
        caller: str,
        clock: ConsoleClock,
        store: PolicyStore,
        on_applied: Callable[[], object],
        timings: Timings,
    ) -> None:
        super().__init__("switchgear-policies", clock, timings)
        self._settings, self._caller = settings, caller
        self._store, self._on_applied = store, on_applied
        url = settings.url or "http://localhost"
        self._connection = Connection(Address.parse(url), settings.token)
        self._cache = FileCache(settings.state_dir, find_file_name(settings, caller, "policies"))
        self._etag: str | None = None

    def restore(self) -> None:
        """Put the cached document in force, unless there is a newer one. Never raises."""
        if self._store.get_policies(self._caller).epoch is None:
            self._cache.restore(self._restore_document)

    def stop(self) -> None:
        """Abort the running request and end the thread; return at once."""
        self._stopped.set()
        self._connection.abort()

    def close_in_child(self) -> None:
        self._connection.close_in_child()

    def _restore_document(self, found: CachedDocument) -> None:
        self._store.accept(
            *(self._caller, _parse_epoch(found), found.document, _parse_left_epochs(found)),
            on_valid=lambda: None,
        )

    def _run(self) -> None:
        self._follow_until_stopped()
        self._connection.close()

    def _record_start_failure(self, error: RuntimeError) -> None:
        self.error = "no thread can be started"
        log.error("switchgear: policies are not followed: %s", error)

    def _follow_once(self) -> None:
        began = time.monotonic()
        was_held = self._etag is not None
        has_news = self._fetch(self._timings.hold if was_held else 0)
        if self.error is not None and self._is_warned:
            log.info("switchgear: policies come from the console again")
        self._failures, self.error, self._is_warned = 0, None, False
        if has_news:
            self._on_applied()
        if has_news or self._cache.is_missing():
            self._save()
        if has_news or not was_held or time.monotonic() - began > self._timings.hold / 2:
            self._pause(self._draw() * PAUSE_JITTER_SECONDS + self._throttle.pause_seconds())
        else:
            self._pause(poll_delay(min(POLL_SECONDS, self._timings.max_poll), self._draw))

    def _fetch(self, hold_seconds: int) -> bool:
        """Fetch the document and return True if it changed. Raise :class:`RequestFailed`."""
        path = f"{CONFIG_PATH}?service={quote(self._caller, safe='')}"
        headers = {"Switchgear-Instance": self._settings.name}
        etag = self._etag
        if etag is not None:
            headers["If-None-Match"] = etag
            path += f"&wait={hold_seconds}"
        answer = self._connection.request(
            *("GET", path, headers),
            seconds=self._timings.answer + hold_seconds,
            max_bytes=MAX_BYTES,
        )
        if answer.status == 304 and etag is None:
            raise RequestFailed("it answers 304, unasked", status=304)
        answer.expect(200, 304)
        if answer.status == 200:
            return self._apply(answer)
        self._update_clock(answer)
        return False

    def _apply(self, answer: Response) -> bool:
        found = _ETAG.fullmatch(answer.headers.get("etag", ""))
        if found is None:
            raise RequestFailed("its policies have no version in their ETag")
        try:
            has_news = self._store.accept(
                *(self._caller, found[1], answer.body), on_valid=lambda: self._update_clock(answer)
            )
        except ValueError as error:
            self._etag = None
            raise RequestFailed(f"its policies are refused: {error}") from None
        self._etag = found[0]
        return has_news

    def _update_clock(self, answer: Response) -> None:
        took = answer.answered_at - answer.sent_at
        if took <= MAX_CLOCK_SAMPLE_SECONDS:
            ago = time.monotonic() - answer.answered_at
            self._clock.update(answer.headers, took, ago)

    def _save(self) -> None:
        known = self._store.get_policies(self._caller)
        version = known.version
        if version is None:
            return
        metadata = {
            "epoch": known.epoch,
            "version": version,
            "left_epochs": list(known.left_epochs),
        }

        def is_current(found: CachedDocument) -> bool:
            if _parse_epoch(found) != known.epoch:
                return known.epoch in _parse_left_epochs(found)
            return found.document == known.body or found.metadata.get("version", 0) > version

        self._cache.save(metadata, known.body, is_current)

    def _record_failure(self, error: RequestFailed) -> None:
        if self._stopped.is_set():
            return
        self._failures += 1
        self.error = error.why
        if self._may_warn():
            log.warning(
                "switchgear: no policies of the console for %s: %s; those of before hold",
                *(self._caller, error),
            )
        self._pause_after(error, self._failures)


def _parse_epoch(found: CachedDocument) -> str:
    epoch = found.metadata.get("epoch")
    if not isinstance(epoch, str):
        raise UnusableFile("it is damaged")
    return epoch


def _parse_left_epochs(found: CachedDocument) -> tuple[str, ...]:
    given = found.metadata.get("left_epochs")
    if not isinstance(given, list):
        raise UnusableFile("it is damaged")
    return tuple(str(one) for one in given)


class PolicyFollowers:
    """The policy followers of one client. Without a console they only restore documents."""

    def __init__(
        self,
        settings: Settings,
        clock: ConsoleClock,
        store: PolicyStore,
        on_applied: Callable[[], object],
        timings: Timings,
    ) -> None:
        self._settings, self._clock, self._store = settings, clock, store
        self._on_applied = on_applied
        self._timings = timings
        self._followers: list[PolicyFollower] = []
        self._is_stopped = False

    def follow(self, caller: str) -> None:
        """Restore the document of the service `caller` from disk and start following it."""
        if self._is_stopped or not (self._settings.has_console or self._settings.state_dir):
            return
        made = PolicyFollower(
            *(self._settings, caller, self._clock, self._store, self._on_applied), self._timings
        )
        made.restore()
        if not self._settings.has_console:
            return
        self._followers.append(made)
        made.start()

    @property
    def error(self) -> str | None:
        """The last error of the first follower that has one; None if no follower has."""
        return next((each.error for each in list(self._followers) if each.error is not None), None)

    def stop(self) -> None:
        """Stop all followers; return at once."""
        self._is_stopped = True
        for each in list(self._followers):
            each.stop()

    def join(self, seconds: float) -> None:
        """Wait at most `seconds` in all for the threads to end."""
        until = time.monotonic() + seconds
        for each in list(self._followers):
            each.join(until - time.monotonic())

    def close_in_child(self) -> None:
        for each in list(self._followers):
            each.close_in_child()
