"""The schedule of a periodic request, with backoff after failures."""

import logging
import time
from dataclasses import dataclass

from switchgear.console import delays
from switchgear.console.errors import RequestFailed

REFUSED_SECONDS = 300.0
"""Pause after a 403, which lasts until the token is replaced."""
REFUSAL_STATUSES = (400, 403, 404, 413, 422)

log = logging.getLogger("switchgear")


@dataclass
class SendSchedule:
    """The schedule of reports or acknowledgements, with backoff after failures.

    `due_at` is the time of the next request, in seconds on the monotonic clock. `scope` is the
    token scope that the request needs.
    """

    name: str
    scope: str
    interval_seconds: float
    due_at: float
    draw: delays.Draw
    failures: int = 0
    is_refused: bool = False

    def record_success(self) -> None:
        if self.is_refused:
            log.info("switchgear: the console takes %s again", self.name)
        self.failures, self.is_refused = 0, False
        self.due_at = time.monotonic() + delays.poll_delay(self.interval_seconds, self.draw)

    def record_failure(self, error: RequestFailed, retry_after_seconds: float | None) -> None:
        """Schedule the next request after a backoff; log the first of several refusals.

        An unreachable console is logged by the follower.
        """
        self.failures += 1
        pause = delays.failure_delay(self.failures, self.draw, error.status, retry_after_seconds)
        if error.status == 403:
            pause = delays.poll_delay(REFUSED_SECONDS, self.draw)
        self.due_at = time.monotonic() + pause
        if error.status in REFUSAL_STATUSES and not self.is_refused:
            self.is_refused = True
            hint = f": the token needs the scope {self.scope}" if error.status == 403 else ""
            log.warning("switchgear: the console refuses %s, %s%s", self.name, error.why, hint)
