"""The outside of a crash test, which accepts each key once and kills senders."""

import contextlib
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal

Moment = Literal["before", "after", "answered"]


class Receiver:
    """A receiver that counts deliveries and kills their senders.

    `kills` gives the delivery at which the sender dies: before it is counted, after, or with the
    answer, and how many seconds later.
    """

    def __init__(self, kills: dict[int, tuple[Moment, float]]) -> None:
        self.kills = kills
        self.killed = 0
        self.deliveries: list[str] = []
        self.done: Counter[str] = Counter()
        self.url = ""
        self._lock = threading.Lock()

    def take(self, key: str, pid: int, answer: object) -> None:
        with self._lock:
            self.deliveries.append(key)
            moment, seconds = self.kills.get(len(self.deliveries), (None, 0.0))
        if moment == "before":
            return self._kill(pid, seconds)
        with self._lock:
            if not self.done[key]:
                self.done[key] += 1
        if moment == "after":
            return self._kill(pid, seconds)
        answer()
        if moment == "answered":
            self._kill(pid, seconds)
        return None

    def _kill(self, pid: int, seconds: float) -> None:
        time.sleep(seconds)
        with contextlib.suppress(ProcessLookupError):  # An earlier one was quicker.
            os.kill(pid, signal.SIGKILL)
        self.killed += 1


@contextlib.contextmanager
def receiver(kills: dict[int, tuple[Moment, float]] | None = None) -> Iterator[Receiver]:
    made = Receiver(kills or {})

    class Handler(BaseHTTPRequestHandler):
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            made.take(self.headers["Idempotency-Key"], int(self.headers["Pid"]), self._answer)

        def _answer(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")
            self.wfile.flush()

        def log_message(self, *args: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        made.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield made
        finally:
            server.shutdown()
            thread.join()
