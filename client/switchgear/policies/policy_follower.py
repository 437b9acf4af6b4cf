"""Threads that fetch the console's policies and overrides for a service, by long polls.

One daemon thread runs for each service whose policies are used, usually one. The last valid
document stays in force and on disk until a newer valid one arrives.
"""

import re
import time
from collections.abc import Callable
from functools import partial
from urllib.parse import quote

from switchgear.clock import ConsoleClock
from switchgear.console.address import Address
from switchgear.console.errors import RequestFailed
from switchgear.console.file_cache import CachedDocument, FileCache, find_file_name
from switchgear.console.follower_thread import FollowerThread
from switchgear.console.timings import Timings, poll_delay
from switchgear.console.transport import Connection, Response, update_clock
from switchgear.journal import log
from switchgear.policies.registry import Registry
from switchgear.settings import Settings

CONFIG_PATH = "/api/v1/config"
MAX_BYTES = 2**22
POLL_SECONDS = 5.0
"""Pause between two polls of a console that does not hold them."""
PAUSE_JITTER_SECONDS = 0.2
"""Maximum pause after an answer, since the console answers all held polls at one moment."""
_ETAG = re.compile(r'"([\w.-]{1,100})\.c([0-9]{1,18})(?:-gzip)?"', re.ASCII)


class PolicyFollower(FollowerThread):
    """A thread that keeps the policies for calls by the service `caller` in `store` up to date."""

    def __init__(
        self,
        settings: Settings,
        clock: ConsoleClock,
        store: Registry,
        *,
        caller: str,
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
        """Put the policy document on disk in force, unless there is one already. Never raises."""
        if self._store.get_policies(self._caller).epoch is None:
            self._cache.restore(
                lambda found: self._store.accept(
                    self._caller, found.epoch, found.document, found.left_epochs
                )
            )

    def stop(self) -> None:
        """Abort the running request and end the thread, without waiting for it."""
        self._stopped.set()
        self._connection.abort()

    def close_in_child(self) -> None:
        self._connection.close_in_child()

    def _run(self) -> None:
        self._follow_until_stopped()
        self._connection.close()

    def _record_start_failure(self, error: RuntimeError) -> None:
        self.error = "can't start a thread"
        log.error("switchgear: policies will not be updated: %s", error)

    def _follow_once(self) -> None:
        began = time.monotonic()
        was_held = self._etag is not None
        has_news = self._fetch(self._timings.hold if was_held else 0)
        if self.error is not None and self._is_warned:
            log.info("switchgear: policies are received from the console again")
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
        """Fetch the policy document and put it in force; return True if it changed.

        Raise :class:`RequestFailed`.
        """
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
            raise RequestFailed("unexpected 304 response", status=304)
        answer.expect(200, 304)
        if answer.status == 200:
            return self._apply(answer)
        update_clock(self._clock, answer)
        return False

    def _apply(self, answer: Response) -> bool:
        found = _ETAG.fullmatch(answer.headers.get("etag", ""))
        if found is None:
            raise RequestFailed("the ETag of the policies has no version")
        try:
            has_news = self._store.accept(
                *(self._caller, found[1], answer.body),
                on_valid=lambda: update_clock(self._clock, answer),
            )
        except ValueError as error:
            self._etag = None
            raise RequestFailed(f"invalid policies: {error}") from None
        self._etag = found[0]
        return has_news

    def _save(self) -> None:
        known = self._store.get_policies(self._caller)
        if known.epoch is not None:
            version = known.document.version
            self._cache.save(CachedDocument(known.epoch, version, known.left_epochs, known.body))

    def _record_failure(self, error: RequestFailed) -> None:
        if self._stopped.is_set():
            return
        self._failures += 1
        self.error = error.why
        if self._may_warn():
            log.warning(
                "switchgear: can't get policies for %s from the console: %s; keeping the present"
                " ones",
                *(self._caller, error),
            )
        self._pause_after(error, self._failures)


class PolicyFollowers:
    """The policy followers of one client, one per calling service.

    Without a console they only restore documents from disk.
    """

    def __init__(
        self,
        settings: Settings,
        clock: ConsoleClock,
        store: Registry,
        on_applied: Callable[[], object],
        timings: Timings,
    ) -> None:
        self._settings = settings
        self._make_follower = partial(
            PolicyFollower, settings, clock, store, on_applied=on_applied, timings=timings
        )
        self._followers: list[PolicyFollower] = []
        self._is_stopped = False

    def follow(self, caller: str) -> None:
        """Restore the policies for calls by `caller` from disk, then follow the console's."""
        if self._is_stopped or not (self._settings.has_console or self._settings.state_dir):
            return
        follower = self._make_follower(caller=caller)
        follower.restore()
        if self._settings.has_console:
            self._followers.append(follower)
            follower.start()

    @property
    def error(self) -> str | None:
        """The last error of the first follower that has one; None if no follower has."""
        return next((each.error for each in list(self._followers) if each.error is not None), None)

    def stop(self) -> None:
        """Stop all followers, without waiting for their threads."""
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
