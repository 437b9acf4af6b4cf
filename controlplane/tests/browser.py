"""A real browser before the whole console: every page it opens is watched for complaints."""

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from controlplane.accounts.models.people import User
from switches.tests.browsers import browser as client_of

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
# The browser logs every answer that is no success; these are told to the person as well.
TOLD_ANYWAY = (
    *(f"status of {code}" for code in (401, 403, 404, 409, 410, 422, 429)),
    "Status Error Code",
    # A request that a later one replaced; one that failed is logged under another name as well.
    "htmx:afterRequest, ",
    "htmx:sendAbort, ",
    # The tests' own server has no sockets: what is tested here is what polling alone gives.
    "WebSocket connection to",
)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    path = shutil.which("chromium") or "/usr/bin/chromium"
    if not os.path.exists(path):
        pytest.skip("no chromium here")
    # Playwright's own loop runs in this thread; the tests' use of the database beside it is safe.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield browser
        browser.close()
    del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


class Desk:
    """A person's browser window; `complaints` are the console errors of our pages."""

    def __init__(self, context: BrowserContext, url: str) -> None:
        self.context = context
        self.url = url
        self.complaints: list[str] = []
        self.page = self.new_page()

    def new_page(self) -> Page:
        page = self.context.new_page()
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", self._console)
        return page

    def open(self, path: str) -> Page:
        self.page.goto(f"{self.url}{path}")
        return self.page

    def _console(self, message: Any) -> None:
        if message.type in {"error", "warning"} and not any(
            known in message.text for known in TOLD_ANYWAY
        ):
            self.complaints.append(message.text)


class Desks:
    """Opens windows for people, and at the end asserts that they logged no errors."""

    def __init__(self, browser: Browser, url: str) -> None:
        self._browser = browser
        self._url = url
        self._open: list[Desk] = []

    def open_desk(self, user: User | None, **options: Any) -> Desk:
        options = {"viewport": {"width": 1280, "height": 800}, **options}
        context = self._browser.new_context(**options)
        context.set_default_timeout(10_000)
        if user is not None:
            session = client_of(user).cookies[settings.SESSION_COOKIE_NAME].value
            context.add_cookies(
                [{"name": settings.SESSION_COOKIE_NAME, "value": session, "url": self._url}]
            )
        desk = Desk(context, self._url)
        self._open.append(desk)
        return desk

    def close(self) -> list[str]:
        for desk in self._open:
            desk.context.close()
        return [complaint for desk in self._open for complaint in desk.complaints]


@pytest.fixture
def desks(chromium: Browser, live_server: Any) -> Iterator[Desks]:
    opened = Desks(chromium, live_server.url)
    yield opened
    assert opened.close() == []
