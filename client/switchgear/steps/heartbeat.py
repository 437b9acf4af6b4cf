"""Heartbeats of running jobs, by which other workers detect a dead worker."""

import contextlib
import threading
from collections.abc import Callable, Iterator

from switchgear import journal
from switchgear.journal import log
from switchgear.patterns import forks
from switchgear.steps.errors import LeaseLost
from switchgear.steps.records import Lease


class HeartbeatThread:
    """A thread that calls `beat` every `seconds` for each job running in this process.

    It runs while there are such jobs. The lease of a job taken over by another worker is marked as
    lost.
    """

    def __init__(self, beat: Callable[[Lease], None], seconds: float) -> None:
        self._beat = beat
        self._seconds = seconds
        self.after_fork()
        forks.register(self)

    def after_fork(self) -> None:
        """Forget the parent's jobs in a forked child."""
        self._changed = threading.Condition(threading.RLock())
        self._leases: dict[Lease, str] = {}
        self._thread: threading.Thread | None = None

    @contextlib.contextmanager
    def sending(self, lease: Lease, job_name: str) -> Iterator[None]:
        """Context manager: send heartbeats for the job of `lease` while the block runs."""
        with self._changed:
            self._leases[lease] = job_name
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="switchgear-steps", daemon=True
                )
                self._thread.start()
        try:
            yield
        finally:
            with self._changed:
                self._leases.pop(lease, None)
                self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: not self._leases, self._seconds)
                if not self._leases:
                    self._thread = None
                    return
                leases = dict(self._leases)
            for lease, job_name in leases.items():
                self._beat_once(lease, job_name)

    def _beat_once(self, lease: Lease, job_name: str) -> None:
        try:
            self._beat(lease)
        except LeaseLost:
            with self._changed:
                if self._leases.pop(lease, None) is None:
                    return  # It ended during the heartbeat.
            lease.is_lost = True
            journal.record("job_lost", job_name, job=lease.job_id)
        except Exception:  # The next one may succeed; if none does, another worker takes over.
            log.exception("switchgear: could not write a heartbeat of the job %s", lease.job_id)
