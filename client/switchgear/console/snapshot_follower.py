"""A thread that keeps the snapshot up to date, by a stream, held (long) polls or plain polls.

Runs in one daemon thread. Whatever the console sends, the last valid snapshot stays in force,
no error reaches the service, and CPU time and memory stay limited.
"""

import logging
import threading
import time

from switchgear.console.errors import RequestFailed
from switchgear.console.fallback_follower import FallbackFollower, Primary
from switchgear.console.file_cache import SnapshotCache
from switchgear.console.follower_thread import FollowerThread
from switchgear.console.mode_selector import ModeSelector
from switchgear.console.reporter import Reporter
from switchgear.console.snapshot_client import ModeUnavailable, SnapshotClient
from switchgear.console.timings import Timings, poll_delay
from switchgear.evaluation.snapshot import POLL_SECONDS
from switchgear.evaluation.snapshot_store import SnapshotStore
from switchgear.settings import Settings
from switchgear.status import FollowState, SnapshotSource

STABLE_STREAM_SECONDS = 30.0
"""Minimum duration of a stream that counts as a success, even if it ends with an error."""
FIRST_JITTER_SECONDS = 1.0
HELD_PAUSE_SECONDS = 0.2

log = logging.getLogger("switchgear")


class SnapshotFollower(FollowerThread):
    """A thread that puts each current snapshot of the console into `store`."""

    def __init__(
        self,
        settings: Settings,
        store: SnapshotStore,
        cache: SnapshotCache,
        reporter: Reporter,
        timings: Timings,
    ) -> None:
        super().__init__("switchgear-follower", store.clock, timings)
        self.synced = threading.Event()
        """Set once the console has sent or confirmed a snapshot."""
        self.way: FollowState = "starting" if settings.has_console else "offline"
        self._url = settings.url
        self._store, self._cache, self._reporter = store, cache, reporter
        self._client = SnapshotClient(settings, store, timings) if settings.has_console else None
        self._modes = ModeSelector(timings.draw, "stream" if settings.stream else "poll")
        self._confirmed_at: float | None = None
        self._is_confirmed_by_file = False
        """True if the snapshot was last confirmed by the file at the fallback URL."""
        self._down_since: float | None = None
        """Time of the first of the failures in a row, monotonic; None while requests succeed."""
        self.fallback: FallbackFollower | None = None
        if settings.has_console and settings.fallback_url is not None:
            primary = Primary(self._down_seconds, self._confirm_by_file)
            self.fallback = FallbackFollower(
                settings, settings.fallback_url, store, primary, timings
            )
        self._is_current = False
        self._reported_orders: tuple[str, ...] = ()

    @property
    def source(self) -> SnapshotSource:
        """The origin of the snapshot; `disk` or `bootstrap` until the console has answered."""
        if self._store.snapshot is None:
            return "none"
        if self._is_confirmed_by_file:
            return "fallback"
        if self._store.is_bootstrapped:
            return "bootstrap"
        return "disk" if self._confirmed_at is None else "console"

    def age_seconds(self) -> float | None:
        """Return the seconds since the console last confirmed the snapshot; None if never."""
        confirmed_at = self._confirmed_at
        if confirmed_at is None:
            return None
        return max(0.0, self._store.clock.time.monotonic() - confirmed_at)

    def record_confirmation(self) -> None:
        """Record that the snapshot in force is the console's current one."""
        self._confirmed_at = self._store.clock.time.monotonic()
        self._is_confirmed_by_file = False
        self.synced.set()

    def start(self) -> None:
        """Start the thread, and the one that reads the fallback URL. Log errors."""
        super().start()
        if self.fallback is not None:
            self.fallback.start()

    def join(self, seconds: float) -> None:
        """Wait at most `seconds` for the threads to end."""
        until = time.monotonic() + seconds
        super().join(seconds)
        if self.fallback is not None:
            self.fallback.join(until - time.monotonic())

    def stop(self) -> None:
        """Abort the running request and end the thread; return at once."""
        self._stopped.set()
        if self.fallback is not None:
            self.fallback.stop()
        if self._client is not None:
            self._client.abort()

    def close_in_child(self) -> None:
        """Close the connection inherited from the parent, in a forked child."""
        was_synced, self.synced = self.synced.is_set(), threading.Event()
        if was_synced:
            self.synced.set()
        if self._client is not None:
            self._client.close_in_child()
        if self.fallback is not None:
            self.fallback.close_in_child()

    def _run(self) -> None:
        if self._client is None:
            return
        if self._store.snapshot is not None:
            self._pause(self._draw() * FIRST_JITTER_SECONDS)
        self._follow_until_stopped()
        self._client.close()

    def _record_start_failure(self, error: RuntimeError) -> None:
        self.way, self.error = "down", "can't start a thread"
        log.error("switchgear: snapshots will not be updated: %s", error)

    def _follow_once(self) -> None:
        """Fetch the snapshot if it is not current, then follow in the selected mode."""
        client = self._client
        assert client is not None  # noqa: S101 - for the type.
        mode = self._modes.select(time.monotonic())
        if self._reporter.streaming != (mode == "stream"):
            self._reporter.streaming = mode == "stream"
        if not self._is_current:
            self._record_answer(client.fetch())
        if mode == "poll":
            self.way = "poll"
            if self._store.snapshot is not None and self._pause(self._poll_delay()):
                self._record_answer(client.fetch())
            return
        try:
            if mode == "stream":
                self._follow_stream(client)
            else:
                self._follow_held_poll(client)
        except RequestFailed as failed:
            self._is_current = False
            if not self._stopped.is_set():
                self._record_mode_failure(failed, client.hint_seconds)

    def _follow_stream(self, client: SnapshotClient) -> None:
        began = time.monotonic()
        for news in client.stream():
            self.way = "stream"
            self._record_answer(news)
            if time.monotonic() - began > STABLE_STREAM_SECONDS:
                self._modes.record_success()
            if self._stopped.is_set():
                return

    def _follow_held_poll(self, client: SnapshotClient) -> None:
        began = time.monotonic()
        self.way = "held"
        news = client.fetch(self._timings.hold)
        self._record_answer(news)
        elapsed = time.monotonic() - began
        if client.has_other_orders:
            # Data planes that differ would answer each other's snapshots at once.
            self._pause(self._poll_delay())
            return
        if not news and elapsed < self._timings.hold / 2:
            raise RequestFailed("long polling is not supported")
        self._modes.record_success()
        # The console answers all held polls at one moment; clients must not all return at one.
        self._pause(self._draw() * HELD_PAUSE_SECONDS)

    def _poll_delay(self) -> float:
        snapshot = self._store.snapshot
        seconds = POLL_SECONDS if snapshot is None else snapshot.poll_seconds
        return poll_delay(min(seconds, self._timings.max_poll), self._draw)

    def _down_seconds(self) -> float:
        since = self._down_since
        return 0.0 if since is None else time.monotonic() - since

    def _confirm_by_file(self, age_seconds: float, is_new: bool) -> None:
        """Record that a file confirms the snapshot in force, which is new or was confirmed before.

        A confirmation by the console that is later stands.
        """
        at = self._store.clock.time.monotonic() - age_seconds
        if is_new or self._confirmed_at is None or at > self._confirmed_at:
            self._confirmed_at, self._is_confirmed_by_file = at, True

    def _record_answer(self, news: bool) -> None:
        self._down_since = None
        self.record_confirmation()
        self._is_current, self._failures, self.error = True, 0, None
        if self._is_warned:
            self._is_warned = False
            log.info("switchgear: the console at %s is available again", self._url)
        if news:
            self._reporter.record_applied()
            if (orders := self._store.view.orders.ids) != self._reported_orders:
                self._reported_orders = orders
                self._reporter.request_report()
            self._cache.save(self._store)
        else:
            self._cache.save_if_missing(self._store)
        if seconds := self._throttle.pause_seconds():
            self._pause(seconds)

    def _record_mode_failure(self, error: RequestFailed, hint_seconds: float | None) -> None:
        """Record a failure of the current mode, select another one if needed, and pause."""
        mode = self._modes.mode
        self._modes.record_failure(
            time.monotonic(), is_permanent=isinstance(error, ModeUnavailable)
        )
        self.error = error.why
        if self._modes.mode != mode:
            log.info(
                "switchgear: can't receive snapshots by %s: %s; falling back to %s",
                mode,
                error.why,
                self._modes.mode,
            )
        self._pause_after(error, self._modes.failures, hint_seconds)

    def _record_failure(self, error: RequestFailed) -> None:
        if self._stopped.is_set():
            return
        self._failures += 1
        self._is_current = False
        self.way, self.error = "down", error.why
        if self._down_since is None:
            self._down_since = time.monotonic()
        if self._may_warn():
            consequence = "no snapshot yet: everything not forced is allowed"
            if self._store.is_bootstrapped:
                consequence = "keeping the bootstrap snapshot"
            elif self._store.snapshot is not None:
                consequence = "keeping the last snapshot"
            log.warning(
                "switchgear: can't get a snapshot from the console at %s: %s; %s",
                self._url,
                error,
                consequence,
            )
        self._pause_after(error, self._failures)
