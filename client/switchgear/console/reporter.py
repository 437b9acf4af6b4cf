"""Tells the console which version is applied here, what was asked for, and how SLIs stand.

One thread, one connection, nothing queued: counts are cumulative, so what could not be told is in
the next report. While a stream is followed, nothing else says that its versions are applied.
"""

import json
import logging
import math
import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue

from switchgear.console import delays as pacing
from switchgear.console.report_builder import (
    ConfirmedSource,
    ReportBuilder,
    make_check_source,
    make_sli_source,
)
from switchgear.console.send_schedule import SendSchedule
from switchgear.console.timings import Timings
from switchgear.console.transport import Address, Connection, RequestFailed, Response
from switchgear.evaluation.snapshot_store import Memory
from switchgear.settings import Settings
from switchgear.sli import Indicators

MIN_GAP_SECONDS = 0.25
"""Between two acknowledgements, or reports, if there is much to tell in quick succession."""
MAX_ANSWER_BYTES = 2**16
FINALIZER_SECONDS = 2.0
ABORT_SECONDS = 0.1

log = logging.getLogger("switchgear")


class Reporter:
    """Its thread runs from `start` to `stop`, which may be called from any thread, as may all else
    that has no underscore."""

    def __init__(
        self,
        settings: Settings,
        memory: Memory,
        indicators: Indicators,
        patience: Timings,
        resilience: ConfirmedSource | None = None,
    ) -> None:
        self.unreported = 0
        """Reports that failed."""
        self._settings = settings
        self._memory = memory
        sources = (make_check_source(memory), make_sli_source(indicators))
        self._reports = ReportBuilder(settings, memory.clock, sources, resilience)
        self._timings = patience
        # Not at once: many may start together, and there is little to tell yet.
        now, every, draw = time.monotonic(), patience.report, patience.draw
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
        # Unlike an event it may be put to by a finalizer or a signal's handler at any moment.
        self._wakes: SimpleQueue[None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._connection = self._new_connection()

    @property
    def streaming(self) -> bool:
        """Whether versions come by a stream, which says nothing of whether they are applied. For
        the follower to set."""
        return self._is_streaming

    @streaming.setter
    def streaming(self, is_streaming: bool) -> None:
        self._is_streaming = is_streaming
        self._wake()

    def start(self) -> None:
        """Begin, also without anything to tell: its thread is the one that :meth:`abandon` needs.
        Where there is no room for a thread that is logged, and nothing is told."""
        if self._thread is None:
            thread = threading.Thread(target=self._run, name="switchgear-courier", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:
                log.error("switchgear: the console is not reported to: %s", error)
            else:
                self._thread = thread

    def record_applied(self) -> None:
        """The follower has put a version in force that came by the stream."""
        self._has_applied = True
        self._acknowledgement.failures = 0  # The console is there: this came from it.
        self._wake()

    def request_report(self) -> None:
        """There is something that the console should hear of at once. From any thread."""
        self._is_urgent = True
        self._wake()

    def begin_stop(self, seconds: float) -> None:
        """Begin to end: what goes on is broken off, and a last report has `seconds`. Does not
        wait."""
        connection = self._connection  # The present one: the last report has one of its own.
        if self._until is None:
            self._until = time.monotonic() + seconds
            self._wake()
            connection.abort()

    def stop(self, seconds: float) -> None:
        """End after a last report, within `seconds`."""
        until = time.monotonic() + seconds
        self.begin_stop(seconds)
        thread = self._thread
        if thread is None or thread is threading.current_thread():
            return
        thread.join(max(0.0, until - time.monotonic()))
        if thread.is_alive():
            self._connection.abort()
            thread.join(ABORT_SECONDS)

    def stop_from_finalizer(self, before: Callable[[], None]) -> None:
        """As :meth:`finish`, after calling `before`, for a finalizer: whoever is interrupted by it
        may hold any lock."""
        self._before_stop = before
        self._wake()

    def close_in_child(self) -> None:
        """In the child of a fork: the connection is the parent's."""
        self._connection.close_in_child()

    def _wake(self) -> None:
        if self._wakes.empty():
            self._wakes.put(None)

    def _run(self) -> None:
        while self._until is None:
            try:
                self._send_due()
                self._wait_until_due()
            except Exception:  # The loop that everything else relies on.
                log.exception("switchgear: the courier failed")
                later = time.monotonic() + self._timings.report
                self._report.due_at = self._acknowledgement.due_at = later
                self._has_applied = False
        self._connection.close()
        self._connection = self._new_connection()
        self._send_final()
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
            is_told = self._send_report(self._timings.report_answer)
            # If it was broken off, there is another one to come.
            self.unreported += not is_told and self._until is None

    def _send_final(self) -> None:
        assert self._until is not None  # noqa: S101 - for the type.
        try:
            left = self._until - time.monotonic()
            if left > 0 and self._has_applied and self._is_streaming:
                self._acknowledge(left)
            self._send_final_reports(self._until)
        except Exception:  # Nobody is there any more whom it could help.
            log.exception("switchgear: the last report failed")

    def _send_final_reports(self, until: float) -> None:
        """As many as it takes to tell everything: what is not told by then never is."""
        self._has_more = self._settings.reports
        while self._has_more:
            left = until - time.monotonic()
            if left <= 0 or not self._send_report(left):
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
        # A console that is away, or busy, is not to be urged.
        if self._is_urgent and not self._report.failures:
            return min(self._report.due_at, self._reported_at + MIN_GAP_SECONDS)
        return self._report.due_at

    def _acknowledge(self, seconds: float) -> None:
        """A plain GET, for what its headers say. `*` is for an answer without the document."""
        self._has_applied = False
        self._acknowledged_at = time.monotonic()
        headers = {"Switchgear-Instance": self._settings.name, "If-None-Match": "*"}
        snapshot = self._memory.snapshot
        if snapshot is not None:
            headers["Switchgear-Applied"] = snapshot.mark
        try:
            answer = self._connection.request(
                "GET", "/api/v1/snapshot", headers, seconds=seconds
            ).expect(200, 304)
        except RequestFailed as failed:
            has_news, self._has_applied = self._has_applied, True
            self._record_failure(self._acknowledgement, failed)
            if has_news:  # While this was on its way, and from the console itself.
                self._acknowledgement.failures = 0
        else:
            # Whoever else answers here has a date, too, but does not know what `*` is.
            if answer.status == 304:
                self._update_clock(answer)
            self._acknowledgement.record_success()

    def _send_report(self, seconds: float) -> bool:
        headers = {"Content-Type": "application/json"}
        self._is_urgent, self._reported_at = False, time.monotonic()
        try:
            answer = self._connection.request(
                *("POST", "/api/v1/report", headers, self._reports.build_next()),
                seconds=seconds,
                most_bytes=MAX_ANSWER_BYTES,
            ).expect(200)
            if not _is_receipt(answer.body):
                raise RequestFailed("its answer is no receipt", status=answer.status)
        except RequestFailed as failed:
            self._record_failure(self._report, failed)
            return False
        self._update_clock(answer)
        self._report.record_success()
        self._has_more = self._reports.confirm_delivery()
        if self._has_more:
            self.request_report()
        return True

    def _record_failure(self, what: SendSchedule, failed: RequestFailed) -> None:
        if self._until is None:  # Else it may have been broken off.
            told = pacing.parse_retry_after(failed.retry_after, self._memory.clock.now())
            what.record_failure(failed, told)

    def _update_clock(self, answer: Response) -> None:
        took, ago = answer.answered_at - answer.sent_at, time.monotonic() - answer.answered_at
        self._memory.clock.heard(answer.headers, took, ago)

    def _new_connection(self) -> Connection:
        address = Address.parse(self._settings.url or "http://localhost")
        return Connection(address, self._settings.token)


def _is_receipt(body: bytes) -> bool:
    """Whether the console says so, rather than a page of somebody else."""
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(said, dict) and "accepted" in said
