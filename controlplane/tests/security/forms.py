"""A page's form as a browser would send it, with empty fields filled in."""

from html.parser import HTMLParser
from typing import Any

from django.test import Client

from controlplane.tests.security.existing_objects import REASON

# By the name of the field, where the page leaves it to the person.
WORDS = {
    "comment": "looked at it",
    "display_name": "Kim",
    "email": "ops@example.org",
    "expires": "1h",
    "justification": "vendor says it is mended, queue empty",
    "name": "written-by-hand",
    "reason": REASON,
    "reveal_reason": REASON,
    "text": "looking at it",
    "username": "newcomer",
}
TYPED = {"checkbox", "radio"}


class Forms(HTMLParser):
    """Each form that posts, with its action and its fields."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, Any]]] = []
        self._in_form = False
        self._select = self._area = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._in_form = given.get("method", "").lower() == "post"
            if self._in_form:
                self.found.append((given.get("action", ""), {}))
        elif self._in_form:
            self._field(tag, given, {name for name, _ in attrs})

    def handle_endtag(self, tag: str) -> None:
        self._in_form = self._in_form and tag != "form"
        self._select = "" if tag == "select" else self._select
        self._area = "" if tag == "textarea" else self._area

    def handle_data(self, data: str) -> None:
        if self._area:
            self._fields[self._area] += data

    def _field(self, tag: str, given: dict[str, str], names: set[str]) -> None:
        name, kind = given.get("name", ""), given.get("type", "text")
        if tag == "option" and self._select:
            if "selected" in names or self._fields[self._select] is None:
                self._fields[self._select] = given.get("value", "")
        elif not name:
            return
        elif tag == "select":
            self._select = name
            self._fields[name] = None
        elif tag == "textarea":
            self._area = name
            self._fields[name] = ""
        elif tag == "input" and (kind not in TYPED or "checked" in names):
            self._fields[name] = given.get("value", "on" if kind in TYPED else "")

    @property
    def _fields(self) -> dict[str, Any]:
        return self.found[-1][1]


def filled(client: Client, path: str, **more: Any) -> dict[str, Any]:
    """Return the filled-in form of this page that posts to itself; `more` overrides fields."""
    html = client.get(path).content.decode()
    ours = [
        fields for action, fields in Forms(html).found if action.partition("?")[0] in {"", path}
    ]
    fields = max(ours, key=len, default={})
    words = {name: WORDS[name] for name in fields.keys() & WORDS.keys() if not fields[name]}
    return {name: value or "" for name, value in fields.items()} | words | more
