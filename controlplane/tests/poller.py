"""A service that polls during a flood, on a persistent connection and on new ones."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx

PAUSE_SECONDS = 0.05
PATH = "/api/v1/snapshot"


class Polls:
    """Results of continuous polling.

    `seconds` are the response times, `failures` the statuses and errors other than 200, `version`
    the newest one received.
    """

    def __init__(self, url: str, token: str) -> None:
        self._url, self._headers = url, {"X-API-Key": token}
        self._stop = threading.Event()
        self.seconds: list[float] = []
        self.failures: list[str] = []
        self.version = 0

    def run(self, *, keep: bool) -> None:
        with httpx.Client(timeout=10) as client:
            while not self._stop.wait(PAUSE_SECONDS):
                self._ask(client if keep else httpx)

    def stop(self) -> None:
        self._stop.set()

    def _ask(self, by: object) -> None:
        began = time.monotonic()
        try:
            response = by.get(self._url + PATH, headers=self._headers, timeout=10)  # type: ignore[attr-defined]
            if response.status_code == 200:
                self.version = int(response.headers["Switchgear-Version"])
            else:
                self.failures.append(str(response.status_code))
        except httpx.HTTPError as error:
            self.failures.append(repr(error))
        self.seconds.append(time.monotonic() - began)


@contextmanager
def polling(url: str, token: str) -> Iterator[Polls]:
    polls = Polls(url, token)
    threads = [
        threading.Thread(target=polls.run, kwargs={"keep": keep}, daemon=True)
        for keep in (True, False)
    ]
    for thread in threads:
        thread.start()
    try:
        yield polls
    finally:
        polls.stop()
        for thread in threads:
            thread.join()
