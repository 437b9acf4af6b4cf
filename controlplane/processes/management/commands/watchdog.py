"""`manage.py watchdog`: run the watchdog process, which runs overdue periodic tasks."""

import signal
import threading
from typing import Any

from django.conf import settings

from controlplane.core.shell import ShellCommand
from controlplane.notify.delivery import sender
from controlplane.processes import health_server
from controlplane.processes.watchdog import Watchdog

STOP_SIGNALS = {signal.SIGTERM, signal.SIGINT}
LAST_SENDS_SECONDS = 0.7


class Command(ShellCommand):
    help = "Run periodic tasks that are 5 s overdue, until SIGTERM."
    is_for_people = False

    def handle(self, *args: Any, **options: Any) -> None:
        stop = threading.Event()
        signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
        watchdog = Watchdog(stop)
        health_server.serve_probes(settings.HEALTH_PORT, loop=watchdog.loop, needs_redis=False)
        # The main thread only waits, so that a hanging database can't delay the end.
        threading.Thread(target=watchdog.run, daemon=True, name="watchdog").start()
        signal.sigwait(STOP_SIGNALS)
        stop.set()
        sender.stop_sending(LAST_SENDS_SECONDS)
