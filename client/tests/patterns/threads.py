"""Threads that make calls."""

import threading

PATIENCE = 20.0
"""Seconds until a thread that should have ended counts as hanging."""


def start_threads(*calls):
    threads = [threading.Thread(target=call, daemon=True) for call in calls]
    for thread in threads:
        thread.start()
    return threads


def join_threads(threads):
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()
