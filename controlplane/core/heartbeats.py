"""Heartbeats of the supervised processes, in the table `core_heartbeat`."""

import threading
import time

import structlog
from django.db import DatabaseError, InterfaceError

from controlplane.core import threads
from controlplane.core.clock import db_now
from controlplane.core.liveness import Loop
from controlplane.core.process_models import Heartbeat
from controlplane.core.sql import execute

EVERY_SECONDS = 2.0
STALE_SECONDS = 7.0

log = structlog.get_logger(__name__)


def record_heartbeat(name: str) -> None:
    """Record that the process `name` is alive, by the database's clock."""
    execute(
        "INSERT INTO core_heartbeat (name, at) VALUES (%s, clock_timestamp())"
        " ON CONFLICT (name) DO UPDATE SET at = excluded.at",
        [name],
    )


def load_ages() -> dict[str, float]:
    """Return the seconds since each process's last heartbeat, by name; never negative."""
    rows = list(Heartbeat.objects.all())
    now = db_now()
    return {row.name: abs((now - row.at).total_seconds()) for row in rows}


# The loop must report its progress: a thread alone would only prove that the process exists.
class Pulse(Loop):
    """Heartbeats of a process: a thread records them while the main loop makes progress."""

    def __init__(self, name: str, *, may_rest_seconds: float = 4.0) -> None:
        super().__init__(may_rest_seconds=may_rest_seconds)
        self._name = name
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread that records heartbeats, unless it runs already."""
        self.record_turn()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, daemon=True, name="pulse")
            self._thread.start()

    def _run(self) -> None:
        reachable = True
        while True:
            if self.hangs():
                threads.close_connection()
            else:
                reachable = self._try(reachable)
            time.sleep(EVERY_SECONDS if reachable else EVERY_SECONDS / 4)

    def _try(self, was_reachable: bool) -> bool:
        try:
            record_heartbeat(self._name)
        except (DatabaseError, InterfaceError) as error:
            if was_reachable:
                log.warning("heartbeat.failed", process=self._name, error=str(error).strip())
            threads.close_connection()
            return False
        return True
