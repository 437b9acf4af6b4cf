"""Follows the console: by its stream, else by held polls, else by plain ones.

One daemon thread. Whatever the console does, the last good snapshot stays in force, nothing is
raised to anybody, and neither a fifth of a processor nor much of the memory is used.
"""

import logging
import threading
import time

from switchgear.evaluation.snapshot_store import Memory
from switchgear.following.asking import Asker, Unfit
from switchgear.following.courier import Courier
from switchgear.following.disk import Disk
from switchgear.following.failures import Failed
from switchgear.following.pacing import Ladder, after_failure, poll_pause, retry_after
from switchgear.following.patience import Patience
from switchgear.following.resting import Rest
from switchgear.settings import Settings
from switchgear.status import Source, Way

CARRIED_SECONDS = 30.0
"""A stream that lived that long was a good one."""
FIRST_JITTER_SECONDS = 1.0
HELD_PAUSE_SECONDS = 0.2
WARNING_SECONDS = 30.0
"""Outages that follow each other sooner are one, as far as the log is concerned."""

log = logging.getLogger("switchgear")


class Follower:
    """Keeps `memory` at what the console says."""

    def __init__(
        self,
        settings: Settings,
        memory: Memory,
        disk: Disk,
        courier: Courier,
        patience: Patience,
    ) -> None:
        self.heard = threading.Event()
        """Set once the console has said what is engaged."""
        self.way: Way = "starting" if settings.has_console else "offline"
        self.error: str | None = None
        """Why the last try failed; None if it did not."""
        self._url = settings.url
        self._memory, self._disk, self._courier = memory, disk, courier
        self._patience, self._draw = patience, patience.draw
        self._asker = Asker(settings, memory, self._patience) if settings.has_console else None
        self._ladder = Ladder(patience.draw, "stream" if settings.stream else "poll")
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="switchgear-follower", daemon=True)
        self._confirmed_at: float | None = None
        self._is_current = False
        self._failures = 0
        self._is_warned = False
        self._warned_at = float("-inf")
        self._rest = Rest()

    @property
    def source(self) -> Source:
        """The origin of the snapshot in force; `disk` or `bootstrap` until this process has
        received an answer of the console."""
        if self._memory.snapshot is None:
            return "none"
        if self._memory.is_bootstrapped:
            return "bootstrap"
        return "disk" if self._confirmed_at is None else "console"

    def age_seconds(self) -> float | None:
        """Since the console last confirmed the snapshot in force; None if it never did here."""
        confirmed_at = self._confirmed_at
        if confirmed_at is None:
            return None
        return max(0.0, self._memory.clock.time.monotonic() - confirmed_at)

    def confirmed(self) -> None:
        """What is in force is what the console says at this moment."""
        self._confirmed_at = self._memory.clock.time.monotonic()
        self.heard.set()

    def start(self) -> None:
        """Begin. Where there is no room for a thread that is logged, and nothing is followed."""
        try:
            self._thread.start()
        except RuntimeError as error:
            self.way, self.error = "down", "no thread can be started"
            log.error("switchgear: the console is not followed: %s", error)

    def stop(self) -> None:
        """End what goes on; returns at once."""
        self._stopped.set()
        if self._asker is not None:
            self._asker.abort()

    def join(self, seconds: float) -> None:
        """Wait at most that long until the thread has ended."""
        if self._thread.ident is not None and self._thread is not threading.current_thread():
            self._thread.join(max(0.0, seconds))

    def forsake(self) -> None:
        """In the child of a fork: close what is ours of the parent's connection, and wait
        for none of its threads."""
        was_heard, self.heard = self.heard.is_set(), threading.Event()
        if was_heard:
            self.heard.set()
        if self._asker is not None:
            self._asker.forsake()

    def _run(self) -> None:
        if self._asker is None:
            return
        if self._memory.snapshot is not None:
            self._pause(self._draw() * FIRST_JITTER_SECONDS)
        while not self._stopped.is_set():
            try:
                self._turn(self._asker)
            except Failed as failed:
                self._failed(failed)
            except Exception as error:  # The loop that everything else relies on.
                log.debug("switchgear: an error of the client itself", exc_info=True)
                self._failed(Failed(f"an error of the client itself: {type(error).__name__}"))
        self._asker.close()

    def _turn(self, asker: Asker) -> None:
        """Make sure of the present snapshot, then follow for as long as it goes."""
        rung = self._ladder.next(time.monotonic())
        if self._courier.streaming != (rung == "stream"):
            self._courier.streaming = rung == "stream"
        if not self._is_current:
            self._hear(asker.ask())
        if rung == "poll":
            snapshot = self._memory.snapshot
            self.way = "poll"
            if snapshot is not None:
                seconds = min(snapshot.poll_seconds, self._patience.max_poll)
                if self._pause(poll_pause(seconds, self._draw)):
                    self._hear(asker.ask())
            return
        try:
            if rung == "stream":
                self._listen(asker)
            else:
                self._hold(asker)
        except Failed as failed:
            self._is_current = False
            if not self._stopped.is_set():
                self._stumbled(failed, asker.hint_seconds)

    def _listen(self, asker: Asker) -> None:
        began = time.monotonic()
        for news in asker.listen():
            self.way = "stream"
            self._hear(news)
            if time.monotonic() - began > CARRIED_SECONDS:
                self._ladder.worked()
            if self._stopped.is_set():
                return

    def _hold(self, asker: Asker) -> None:
        began = time.monotonic()
        self.way = "held"
        news = asker.ask(self._patience.hold)
        self._hear(news)
        took = time.monotonic() - began
        if not news and took < self._patience.hold / 2:
            raise Failed("it does not hold polls")
        self._ladder.worked()
        # All who were waiting are answered at one moment.
        self._pause(self._draw() * HELD_PAUSE_SECONDS)

    def _hear(self, news: bool) -> None:
        """The console has confirmed what is in force, or has just put it in force."""
        self.confirmed()
        self._is_current, self._failures, self.error = True, 0, None
        if self._is_warned:
            self._is_warned = False
            log.info("switchgear: the console at %s is heard again", self._url)
        if news:
            self._courier.applied()
            self._disk.keep(self._memory)
        else:
            self._disk.see_to(self._memory)
        if seconds := self._rest.due():
            self._pause(seconds)

    def _stumbled(self, failed: Failed, hint_seconds: float | None) -> None:
        """The present way broke off; the console may well be there."""
        rung = self._ladder.rung
        self._ladder.failed(time.monotonic(), for_good=isinstance(failed, Unfit))
        self.error = failed.why
        if self._ladder.rung != rung:
            log.info(
                "switchgear: the console can't be followed by %s: %s; by %s instead, for now",
                rung,
                failed.why,
                self._ladder.rung,
            )
        self._pause_after(failed, self._ladder.failures, hint_seconds)

    def _failed(self, failed: Failed) -> None:
        """The console gave no usable answer to a plain question."""
        if self._stopped.is_set():
            return
        self._failures += 1
        self._is_current = False
        self.way, self.error = "down", failed.why
        now = time.monotonic()
        if not self._is_warned and now - self._warned_at >= WARNING_SECONDS:
            self._is_warned, self._warned_at = True, now
            rest = "nothing is known: all is allowed that is not forced"
            if self._memory.is_bootstrapped:
                rest = "the bootstrap stays in force"
            elif self._memory.snapshot is not None:
                rest = "what it said last stays in force"
            log.warning("switchgear: no word of the console at %s: %s; %s", self._url, failed, rest)
        self._pause_after(failed, self._failures)

    def _pause_after(
        self, failed: Failed, failures: int, hint_seconds: float | None = None
    ) -> None:
        told = retry_after(failed.retry_after, self._memory.clock.now())
        self._pause(after_failure(failures, self._draw, failed.status, told, hint_seconds))

    def _pause(self, seconds: float) -> bool:
        """False if it was cut short because we are stopped."""
        return not self._stopped.wait(seconds)
