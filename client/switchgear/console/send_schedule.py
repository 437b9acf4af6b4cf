"""When something is told again, after it was, or could not be."""

import logging
import time
from dataclasses import dataclass

from switchgear.console import delays as pacing
from switchgear.console.transport import RequestFailed

REFUSED_SECONDS = 300.0
"""Until it is tried again what the token may not do."""
REFUSAL_STATUSES = (400, 403, 404, 413, 422)

log = logging.getLogger("switchgear")


@dataclass
class SendSchedule:
    """What is told again and again, about every `every_seconds`: `at` is when it is due, by the
    monotonic clock. It takes a token with this `scope`."""

    name: str
    scope: str
    interval_seconds: float
    due_at: float
    draw: pacing.Draw
    failures: int = 0
    is_refused: bool = False

    def record_success(self) -> None:
        if self.is_refused:
            log.info("switchgear: the console takes %s again", self.name)
        self.failures, self.is_refused = 0, False
        self.due_at = time.monotonic() + pacing.poll_delay(self.interval_seconds, self.draw)

    def record_failure(self, failed: RequestFailed, parse_retry_after: float | None) -> None:
        """That the console is away is said by whoever follows it; that it refuses is said here."""
        self.failures += 1
        pause = pacing.failure_delay(self.failures, self.draw, failed.status, parse_retry_after)
        if failed.status == 403:
            pause = pacing.poll_delay(REFUSED_SECONDS, self.draw)
        self.due_at = time.monotonic() + pause
        if failed.status in REFUSAL_STATUSES and not self.is_refused:
            self.is_refused = True
            hint = f": the token needs the scope {self.scope}" if failed.status == 403 else ""
            log.warning("switchgear: the console refuses %s, %s%s", self.name, failed.why, hint)
