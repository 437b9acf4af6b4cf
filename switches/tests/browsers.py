"""Browsers in tests of screens: Django's client, with and without htmx."""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from html.parser import HTMLParser
from typing import Any, TypeVar

from django.test import Client

from controlplane.accounts.models.people import User
from controlplane.core.actors import system_actor
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import browser_of, person
from switches import services

T = TypeVar("T")
REASON = "OpenAI 5xx on completions since 02:10, INC-4411"
SAFE_NOW = "5xx below 0.1 % for twenty minutes, vendor confirms"
# Headers that htmx sends for a part of the page, and from inside the dialog.
PART = {"HX-Request": "true", "HX-Target": "live"}
DIALOG = {"HX-Request": "true", "HX-Target": "dialog-body"}


def browser(user: User, *, csrf: bool = False) -> Client:
    return browser_of(user, csrf=csrf)


def browser_as(role: str) -> Client:
    return browser(person(role))


def engaged(switch: str = "segment:finance", by: User | None = None, **more: Any) -> User:
    """Engage a switch for a day, or as `more` says, and return the person."""
    scope, _, key = switch.partition(":")
    user = by or User.objects.filter(username="kim").first() or person("operator", "kim")
    arguments = {"reason": REASON, "expires_in": "24h", "now": db_now(), **more}
    services.engage(scope=scope, key=key, actor=user.as_actor(), **arguments)
    return user


def released(switch: str = "segment:finance") -> None:
    """Release a switch at once, as the server's shell."""
    scope, _, key = switch.partition(":")
    services.release(
        scope=scope,
        key=key,
        justification=SAFE_NOW,
        mode="immediate",
        actor=system_actor("shell"),
        now=db_now(),
    )


def overdue(switch: str = "segment:late") -> None:
    """Create an episode that expired an hour ago and is held."""
    now = db_now()
    engaged(switch, expires_in="1h", on_expiry="hold", now=now - timedelta(hours=2))
    services.expire_due(now)


def within_a_minute(act: Callable[[], T]) -> T:
    """Return the result of `act`; repeat it if a minute passed, since poll tokens change then."""
    while True:
        began, result = db_now().minute, act()
        if db_now().minute == began:
            return result


def page(response: Any) -> str:
    text: str = response.content.decode()
    return text


def text(html: str) -> str:
    """Return the readable text, with single spaces."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", html))


class Tags(HTMLParser):
    """All start tags of a page, with their attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def having(self, tag: str, **wanted: str) -> list[dict[str, str | None]]:
        """Return the attributes of matching tags; `class_` and `data_x` mean `class`, `data-x`."""
        names = {name.rstrip("_").replace("_", "-"): value for name, value in wanted.items()}
        return [
            attributes
            for found, attributes in self.found
            if found == tag and all(attributes.get(n) == v for n, v in names.items())
        ]

    def value(self, name: str) -> str | None:
        """Return the value of the input of this name."""
        return next(
            attributes.get("value")
            for tag, attributes in self.found
            if tag == "input" and attributes.get("name") == name
        )


def switches_shown(html: str) -> list[str]:
    """Return the switches of the board's rows, in order."""
    return [
        str(attributes["data-switch"])
        for tag, attributes in Tags(html).found
        if tag == "tr" and "data-switch" in attributes
    ]


def local(moment: datetime) -> str:
    """Format a time as a date field sends it."""
    return f"{moment:%Y-%m-%dT%H:%M}"
