"""How a topic's resources stand, over HTTP: the truth, whatever a socket left out."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from switchgear.cli import exits
from switchgear.cli.call import Call
from switchgear.cli.commands import showing
from switchgear.cli.console import Console, Document, place, switch_path

MAX_ROWS = 5_000


def read(call: Call, topic: str, known: Collection[str]) -> list[Document]:
    """Those that are to be shown, and what became of those that are known and not among them."""
    found = _READ[topic](call)
    if topic in _ONE:
        here = {str(one["id"]) for one in found}
        found += [
            one for name in known if name not in here for one in _one(call.console, topic, name)
        ]
    return found


def _one(console: Console, topic: str, name: str) -> list[Document]:
    try:
        return [console.get(_ONE[topic](name))]
    except exits.Ended as end:
        if end.code != exits.NOT_FOUND:
            raise
        return []


def _switches(call: Call) -> list[Document]:
    return [one for state in ("engaged", "ramping") for one in _all(call, "/switches/", state)]


def _letters(call: Call) -> list[Document]:
    return [*call.console.items("/dlq/"), *_all(call, "/dlq/jobs/", "live")]


def _all(call: Call, path: str, state: str | None = None) -> list[Document]:
    page = call.console.pages(path, {"state": state}, MAX_ROWS)
    if page["more"]:
        showing.cut(call, MAX_ROWS, f"at {path}; the others are told when they change")
    found: list[Document] = page["results"]
    return found


_READ: Mapping[str, Callable[[Call], list[Any]]] = {
    "switches": _switches,
    "ramps": lambda call: _all(call, "/ramps/", "live"),
    "breakers": lambda call: _all(call, "/breakers/"),
    "dlq": _letters,
    "slo": lambda call: _all(call, "/slos/"),
    "degradation": lambda call: [call.console.get("/degradation")],
}
_ONE: Mapping[str, Callable[[str], str]] = {
    "switches": lambda name: f"{switch_path(name)}/",
    "ramps": lambda name: f"/ramps{place(name)}/",
}
"""Where only a part of all is read: those that are over are asked for one by one."""
