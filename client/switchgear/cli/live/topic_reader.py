"""Reads the resources of a topic over HTTP, whatever a socket has left out."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from switchgear.cli import exits
from switchgear.cli.api_client import ApiClient, Document, switch_path, url_path
from switchgear.cli.command_context import CommandContext
from switchgear.cli.commands import output

MAX_ROWS = 5_000


def read_topic(call: CommandContext, topic: str, known: Collection[str]) -> list[Document]:
    """Return the resources to show, and the known ones that are no longer among them."""
    found = _READ[topic](call)
    if topic in _ONE:
        here = {str(one["id"]) for one in found}
        found += [
            one
            for name in known
            if name not in here
            for one in _read_one(call.console, topic, name)
        ]
    return found


def _read_one(console: ApiClient, topic: str, name: str) -> list[Document]:
    try:
        return [console.get(_ONE[topic](name))]
    except exits.CommandExit as end:
        if end.code != exits.NOT_FOUND:
            raise
        return []


def _switches(call: CommandContext) -> list[Document]:
    return [one for state in ("engaged", "ramping") for one in _read_all(call, "/switches/", state)]


def _letters(call: CommandContext) -> list[Document]:
    return [*call.console.get_list("/dlq/"), *_read_all(call, "/dlq/jobs/", "live")]


def _read_all(call: CommandContext, path: str, state: str | None = None) -> list[Document]:
    page = call.console.get_pages(path, {"state": state}, MAX_ROWS)
    if page["more"]:
        output.note_truncated(call, MAX_ROWS, f"at {path}; the others are told when they change")
    found: list[Document] = page["results"]
    return found


_READ: Mapping[str, Callable[[CommandContext], list[Any]]] = {
    "switches": _switches,
    "ramps": lambda call: _read_all(call, "/ramps/", "live"),
    "breakers": lambda call: _read_all(call, "/breakers/"),
    "dlq": _letters,
    "slo": lambda call: _read_all(call, "/slos/"),
    "degradation": lambda call: [call.console.get("/degradation")],
}
_ONE: Mapping[str, Callable[[str], str]] = {
    "switches": lambda name: f"{switch_path(name)}/",
    "ramps": lambda name: f"/ramps{url_path(name)}/",
}
"""Paths of topics that list only live resources: ended ones are read one by one."""
