"""A thread that sends reports and acknowledgements of applied versions to the console.

One thread with one connection sends them without a queue: counts are cumulative, so the next report
makes up for a failed one. While a snapshot stream is followed, acknowledgements are the only sign
that its versions are applied.
"""

import json
import logging
import math
import threading
import time
from collections.abc import Callable
from functools import partial
from queue import Empty, SimpleQueue

from switchgear.console.address import Address
from switchgear.console.errors import RequestFailed
from switchgear.console.follower_thread import start_thread
from switchgear.console.report_builder import (
    ConfirmedSource,
    ReportBuilder,
    read_checks,
    read_indicators,
)
from switchgear.console.timings import SendSchedule, Timings, parse_retry_after
from switchgear.console.transport import Connection, update_clock
from switchgear.evaluation.snapshot_store import SnapshotStore
from switchgear.settings import Settings
from switchgear.sli import Indicators

MIN_GAP_SECONDS = 0.25
"""Minimum time between two acknowledgements, or two reports."""
MAX_ANSWER_BYTES = 2**16
FINALIZER_SECONDS = 2.0
"""Time for the final report of a client that was garbage-collected."""
ABORT_SECONDS = 0.1

log = logging.getLogger("switchgear")


class Reporter:
    """The reporting thread of a client. Public methods may be called from any thread."""

    def __init__(
        self,
        settings: Settings,
        store: SnapshotStore,
        indicators: Indicators,
        timings: Timings,
        resilience: ConfirmedSource | None = None,
    ) -> None:
        self.unreported = 0
        """Number of failed reports."""
        self._settings = settings
        self._store = store
        sources = (partial(read_checks, store), partial(read_indicators, indicators))
        self._reports = ReportBuilder(settings, store.clock, sources, resilience)
        self._timings = timings
        # Delayed and jittered, since many clients may start together.
        now, every, draw = time.monotonic(), timings.report, timings.draw
        self._report = SendSchedule("reports", "report:write", every, now + every * draw(), draw)
        self._acknowledgement = SendSchedule(
            "acknowledgements", "switches:read", every, now + every, draw
        )
        self._acknowledged_at = self._reported_at = -math.inf
        self._is_urgent = self._has_more = False
        self._is_streaming = False
        self._has_applied = False
        self._until: float | None = None
        self._before_stop: Callable[[], None] | None = None
        # Unlike an event, a SimpleQueue is reentrant: finalizers and signal handlers may use it.
        self._wakes: SimpleQueue[None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._connection = self._new_connection()

    @property
    def streaming(self) -> bool:
        """True while snapshots arrive by a stream, so that their versions must be acknowledged."""
        return self._is_streaming

    @streaming.setter
    def streaming(self, is_streaming: bool) -> None:
        self._is_streaming = is_streaming
        self._wake()

    def start(self) -> None:
        """Start the thread; if that fails, an error is logged and nothing is reported."""
        if self._thread is None:
            problem = "reports are not sent to the console"
            self._thread = start_thread("switchgear-reporter", self._run, problem)

    def record_applied(self) -> None:
        """Send an acknowledgement soon: a snapshot from the stream was put in force."""
        self._has_applied = True
        self._acknowledgement.failures = 0  # The stream shows that the console answers.
        self._wake()

    def request_report(self) -> None:
        self._is_urgent = True
        self._wake()

    def begin_stop(self, seconds: float) -> None:
        """Abort the running request and allow `seconds` for a final report; return at once."""
        connection = self._connection  # The final report uses a new one.
        if self._until is None:
            self._until = time.monotonic() + seconds
            self._wake()
            connection.abort()

    def stop(self, seconds: float) -> None:
        """Send a final report and end the thread, within `seconds`."""
        until = time.monotonic() + seconds
        self.begin_stop(seconds)
        thread = self._thread
        if thread is None or thread is threading.current_thread():
            return
        thread.join(max(0.0, until - time.monotonic()))
        if thread.is_alive():
            self._connection.abort()
            thread.join(ABORT_SECONDS)

    def stop_from_finalizer(self, before_stop: Callable[[], None]) -> None:
        """End the reporter during garbage collection, without taking a lock.

        Its thread calls `before_stop`, sends a final report and ends.
        """
        self._before_stop = before_stop
        self._wake()

    def close_in_child(self) -> None:
        self._connection.close_in_child()

    def _wake(self) -> None:
        if self._wakes.empty():
            self._wakes.put(None)

    def _run(self) -> None:
        while self._until is None:
            try:
                self._send_due()
                self._wait_until_due()
            except Exception:  # No error may end the thread.
                log.exception("switchgear: the reporter failed")
                later = time.monotonic() + self._timings.report
                self._report.due_at = self._acknowledgement.due_at = later
                self._has_applied = False
        self._connection.close()
        self._connection = self._new_connection()
        try:
            self._send_final(self._until)
        except Exception:  # The client is closed, with or without its last report.
            log.exception("switchgear: the last report failed")
        self._connection.close()

    def _wait_until_due(self) -> None:
        due = min(self._acknowledgement_due_at(), self._report_due_at())
        seconds = min(max(0.0, due - time.monotonic()), self._timings.report)
        try:
            self._wakes.get(timeout=seconds)
        except Empty:
            return
        if self._before_stop is not None:
            self._until = time.monotonic() + FINALIZER_SECONDS
            self._before_stop()

    def _send_due(self) -> None:
        if self._acknowledgement_due_at() <= time.monotonic():
            self._acknowledge(self._timings.report_answer)
        if self._until is None and self._report_due_at() <= time.monotonic():
            is_sent = self._send_report(self._timings.report_answer)
            # An aborted report is followed by the final one.
            self.unreported += not is_sent and self._until is None

    def _send_final(self, until: float) -> None:
        """Send the last acknowledgement and reports, until all is delivered or time is up."""
        left = until - time.monotonic()
        if left > 0 and self._has_applied and self._is_streaming:
            self._acknowledge(left)
        self._has_more = self._settings.reports
        while self._has_more:
            left = until - time.monotonic()
            if left <= 0 or not self._send_report(left, is_final=True):
                self.unreported += 1
                return
            if self._has_more:
                time.sleep(MIN_GAP_SECONDS)

    def _acknowledgement_due_at(self) -> float:
        if not self._is_streaming:
            return math.inf
        if self._has_applied and not self._acknowledgement.failures:
            return self._acknowledged_at + MIN_GAP_SECONDS
        return self._acknowledgement.due_at

    def _report_due_at(self) -> float:
        if not self._settings.reports:
            return math.inf
        # Do not hurry a console that is unavailable or overloaded.
        if self._is_urgent and not self._report.failures:
            return min(self._report.due_at, self._reported_at + MIN_GAP_SECONDS)
        return self._report.due_at

    def _acknowledge(self, seconds: float) -> None:
        """Acknowledge the applied version by a GET that does not fetch the snapshot."""
        self._has_applied = False
        self._acknowledged_at = time.monotonic()
        headers = {"Switchgear-Instance": self._settings.name, "If-None-Match": "*"}
        if (mark := self._store.view.mark) is not None:
            headers["Switchgear-Applied"] = mark
        try:
            answer = self._connection.request(
                "GET", "/api/v1/snapshot", headers, seconds=seconds
            ).expect(200, 304)
        except RequestFailed as failed:
            has_news, self._has_applied = self._has_applied, True
            self._record_failure(self._acknowledgement, failed)
            if has_news:  # A version arrived meanwhile: the console answers.
                self._acknowledgement.failures = 0
        else:
            # Only the console answers `*` with 304; a proxy's date must not count.
            if answer.status == 304:
                update_clock(self._store.clock, answer)
            self._acknowledgement.record_success()

    def _send_report(self, seconds: float, *, is_final: bool = False) -> bool:
        headers = {"Content-Type": "application/json"}
        if is_final:
            headers["Switchgear-Final-Report"] = "true"
        self._is_urgent, self._reported_at = False, time.monotonic()
        try:
            answer = self._connection.request(
                *("POST", "/api/v1/report", headers, self._reports.build_next()),
                seconds=seconds,
                max_bytes=MAX_ANSWER_BYTES,
            ).expect(200)
            if not _is_receipt(answer.body):
                raise RequestFailed("unexpected response to a report", status=answer.status)
        except RequestFailed as failed:
            self._record_failure(self._report, failed)
            return False
        update_clock(self._store.clock, answer)
        self._report.record_success()
        self._has_more = self._reports.confirm_delivery()
        if self._has_more:
            self.request_report()
        return True

    def _record_failure(self, schedule: SendSchedule, error: RequestFailed) -> None:
        if self._until is None:  # A stop may have aborted the request.
            after = parse_retry_after(error.retry_after, self._store.clock.now())
            schedule.record_failure(error, after)

    def _new_connection(self) -> Connection:
        address = Address.parse(self._settings.url or "http://localhost")
        return Connection(address, self._settings.token)


def _is_receipt(body: bytes) -> bool:
    """Return True if `body` is the console's receipt, and not a page of a proxy."""
    try:
        receipt = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(receipt, dict) and "accepted" in receipt
