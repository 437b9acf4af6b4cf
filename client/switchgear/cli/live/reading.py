"""How a topic's resources stand, over HTTP: the truth, whatever a socket left out."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from switchgear.cli import exits
from switchgear.cli.console import Console, Document, place

MOST = 5_000


def read(console: Console, topic: str, known: Collection[str]) -> list[Document]:
    """Those that are to be shown, and what became of those that are known and not among them."""
    found = _READ[topic](console)
    if topic in _ONE:
        here = {str(one["id"]) for one in found}
        found += [one for name in known if name not in here for one in _one(console, topic, name)]
    return found


def _one(console: Console, topic: str, name: str) -> list[Document]:
    try:
        return [console.get(_ONE[topic](name))]
    except exits.Ended as end:
        if end.code != exits.NOT_FOUND:
            raise
        return []


def _switches(console: Console) -> list[Document]:
    return [one for state in ("engaged", "ramping") for one in _all(console, "/switches/", state)]


def _letters(console: Console) -> list[Document]:
    streams: list[Document] = console.get("/dlq/")
    return [*streams, *_all(console, "/dlq/jobs/", "live")]


def _all(console: Console, path: str, state: str | None = None) -> list[Document]:
    found: list[Document] = console.pages(path, {"state": state}, MOST)["results"]
    return found


_READ: Mapping[str, Callable[[Console], list[Any]]] = {
    "switches": _switches,
    "ramps": lambda console: _all(console, "/ramps/", "live"),
    "breakers": lambda console: _all(console, "/breakers/"),
    "dlq": _letters,
    "slo": lambda console: _all(console, "/slos/"),
    "degradation": lambda console: [console.get("/degradation")],
}
_ONE: Mapping[str, Callable[[str], str]] = {
    "switches": lambda name: f"/switches{place(*name.split(':', 1))}/",
    "ramps": lambda name: f"/ramps{place(name)}/",
}
"""Where only a part of all is read: those that are over are asked for one by one."""
