"""Measures console pages in the background: two pages, each fetched every half second."""

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.cookies import SimpleCookie
from typing import Self
from urllib.parse import urlencode

from . import fixtures, http_client, latencies, stalls
from .latencies import Latencies

EVERY_SECONDS = 0.5
SIGN_IN = "/sign-in/"
SWITCHBOARD = "/"
PAGES = {"sign-in page": SIGN_IN, "switchboard": SWITCHBOARD}
FORM_TOKEN = re.compile(rb'name="csrfmiddlewaretoken" value="([^"]+)"')


class Browser:
    """An HTTP client with cookies for the console; :meth:`signed_in` begins a session."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._cookies: SimpleCookie = SimpleCookie()

    @classmethod
    def signed_in(cls, port: int) -> Self:
        """Return a client that is signed in as the administrator."""
        self = cls(port)
        form = FORM_TOKEN.search(self.ask("GET", SIGN_IN, 200))
        if form is None:
            raise SystemExit("bench: the sign-in page has no form")
        typed = {"username": fixtures.USER, "password": fixtures.PASSWORD}
        fields = {**typed, "csrfmiddlewaretoken": form[1].decode()}
        self.ask("POST", SIGN_IN, 302, urlencode(fields))
        return self

    def ask(self, method: str, path: str, expected: int, body: str | None = None) -> bytes:
        """Send a request and return the page; end the run if the status is not `expected`."""
        cookies = [f"{name}={morsel.value}" for name, morsel in self._cookies.items()]
        headers = {"Cookie": "; ".join(cookies)} if cookies else {}
        if body is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        response = http_client.fetch(
            self.port, path, headers, method=method, body=body, expected=expected
        )
        for line in response.headers.get_all("Set-Cookie", []):
            self._cookies.load(line)
        return response.body


class PageWatch:
    """A thread's repeated fetches of two console pages, and the response times in milliseconds."""

    def __init__(self, person: Browser) -> None:
        self._person = person
        self._took: dict[str, list[float]] = {name: [] for name in PAGES}
        self._failure: BaseException | None = None

    def summed_up(self) -> dict[str, Latencies]:
        if self._failure is not None:
            raise self._failure
        return {name: latencies.summarize(took) for name, took in self._took.items()}

    def run(self, ended: threading.Event) -> None:
        try:
            while not ended.is_set():
                due = time.monotonic() + EVERY_SECONDS
                for name, path in PAGES.items():
                    # The sign-in page redirects a signed-in person: fetch it without a session.
                    browser = Browser(self._person.port) if path == SIGN_IN else self._person
                    began = time.monotonic()
                    browser.ask("GET", path, 200)
                    self._took[name].append((time.monotonic() - began) * 1e3)
                ended.wait(max(0.0, due - time.monotonic()))
        except BaseException as failure:
            self._failure = failure


@contextmanager
def watch_pages(person: Browser) -> Iterator[PageWatch]:
    """Context manager: fetch the pages repeatedly during the block, and record response times."""
    watch = PageWatch(person)
    with stalls.in_background(watch.run):
        yield watch
