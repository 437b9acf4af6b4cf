"""Measures console pages in the background: two pages, each fetched every half second."""

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.cookies import SimpleCookie
from urllib.parse import urlencode

from . import latencies
from .latencies import Latencies
from .servers import HOST

EVERY_SECONDS = 0.5
SIGN_IN = "/sign-in/"
SWITCHBOARD = "/"
PAGES = {"sign-in page": SIGN_IN, "switchboard": SWITCHBOARD}
FORM_TOKEN = re.compile(rb'name="csrfmiddlewaretoken" value="([^"]+)"')


class Browser:
    """An HTTP client with cookies for the console; :meth:`sign_in` begins a session."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._cookies: SimpleCookie = SimpleCookie()

    def sign_in(self, user: str, password: str) -> None:
        form = FORM_TOKEN.search(self.ask("GET", SIGN_IN, 200))
        if form is None:
            raise SystemExit("bench: the sign-in page has no form")
        typed = {"username": user, "password": password, "csrfmiddlewaretoken": form[1].decode()}
        self.ask("POST", SIGN_IN, 302, urlencode(typed))

    def ask(self, method: str, path: str, expected: int, body: str | None = None) -> bytes:
        """Send a request and return the page; end the run if the status is not `expected`."""
        cookies = [f"{name}={morsel.value}" for name, morsel in self._cookies.items()]
        headers = {"Cookie": "; ".join(cookies)} if cookies else {}
        if body is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        connection = HTTPConnection(HOST, self.port, timeout=20)
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        content = response.read()
        connection.close()
        if response.status != expected:
            raise SystemExit(f"bench: {method} {path} was answered with {response.status}")
        for line in response.headers.get_all("Set-Cookie", []):
            self._cookies.load(line)
        return content


class PageWatch:
    """A background fetch of the pages, and their response times in milliseconds."""

    def __init__(self, person: Browser) -> None:
        self._person = person
        self._took: dict[str, list[float]] = {name: [] for name in PAGES}
        self._ended = threading.Event()
        self._failure: BaseException | None = None

    def summed_up(self) -> dict[str, Latencies]:
        if self._failure is not None:
            raise self._failure
        return {name: latencies.summarize(took) for name, took in self._took.items()}

    def _run(self) -> None:
        try:
            while not self._ended.is_set():
                due = time.monotonic() + EVERY_SECONDS
                for name, path in PAGES.items():
                    # The sign-in page redirects a signed-in person: fetch it without a session.
                    browser = Browser(self._person.port) if path == SIGN_IN else self._person
                    began = time.monotonic()
                    browser.ask("GET", path, 200)
                    self._took[name].append((time.monotonic() - began) * 1e3)
                self._ended.wait(max(0.0, due - time.monotonic()))
        except BaseException as failure:
            self._failure = failure


@contextmanager
def watch_pages(person: Browser) -> Iterator[PageWatch]:
    """Context manager: fetch the pages repeatedly during the block, and record response times."""
    watch = PageWatch(person)
    thread = threading.Thread(target=watch._run, daemon=True)
    thread.start()
    try:
        yield watch
    finally:
        watch._ended.set()
        thread.join()
