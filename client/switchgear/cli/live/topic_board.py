"""The known resources of each topic, read over HTTP and printed as lines when they change."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from switchgear.cli import exits, output
from switchgear.cli.api_client import Document, switch_path, url_path
from switchgear.cli.command_context import CommandContext
from switchgear.cli.formatters import Cell, StyledText, cell
from switchgear.cli.live import resource_lines

REFETCHED = "refetched"
MAX_ROWS = 5_000


class TopicBoard:
    """The latest line of each known resource, by topic. Lines that change are printed."""

    def __init__(self, call: CommandContext, topics: Iterable[str], *, chosen: bool) -> None:
        self.topics = list(topics)
        self._call = call
        self.chosen = chosen
        """True if the user named the topics. Then an unreadable topic ends the command."""
        self._known: dict[str, dict[str, str]] = {}

    def handle_message(self, message: Mapping[str, Any]) -> None:
        """Store the state of one resource from a live message; print its line if that changed."""
        topic, one = message["topic"], message["data"]
        lines = self._known.setdefault(topic, {})
        if self._call.screen.as_json:
            self._call.screen.json_line(message)
        if str(message["event"]).endswith(".removed"):
            if lines.pop(str(one["id"]), None) is not None:
                line = cell(StyledText("removed  ", "warn"), one["id"])
                self._print_line(topic, line, message["at"])
            return
        line = resource_lines.FORMATTERS[topic](one, self._call.clock)
        name = resource_lines.resource_key(topic, one)
        if lines.get(name) != str(line):
            lines[name] = str(line)
            self._print_line(topic, line, message["at"])

    def refetch(self, topics: Iterable[str] | None = None) -> None:
        """Read topics over HTTP, all if `topics` is None, and print changed lines.

        A resource that was not known before is printed only if its state is not normal.
        """
        for topic in list(self.topics if topics is None else topics):
            try:
                found = _read_topic(self._call, topic, self._known.get(topic, {}))
            except exits.CommandExit as end:
                if end.code != exits.NO_RIGHTS or self.chosen or end.problem.get("status") == 401:
                    raise
                self.topics.remove(topic)
                if not self.topics:
                    raise
                self._call.screen.note(f"Without {topic}: {end}")
                continue
            self._compare(topic, found)

    def _compare(self, topic: str, found: list[Any]) -> None:
        before, now = self._known.get(topic, {}), dict[str, str]()
        for one in found:
            name = resource_lines.resource_key(topic, one)
            line = resource_lines.FORMATTERS[topic](one, self._call.clock)
            now[name] = str(line)
            if before[name] == str(line) if name in before else resource_lines.NORMAL[topic](one):
                continue
            if self._call.screen.as_json:
                at = self._call.console.now.isoformat()
                message = {"topic": topic, "event": REFETCHED, "at": at, "data": one}
                self._call.screen.json_line(message)
            self._print_line(topic, line, None)
        self._known[topic] = now

    def _print_line(self, topic: str, line: Cell, at: Any) -> None:
        if not self._call.screen.as_json:
            self._call.screen.event(self._call.clock.time_of_day(at), topic, line)


def _read_topic(call: CommandContext, topic: str, lines: Collection[str]) -> list[Document]:
    """Return a topic's resources, as its list has them, and known resources that left the list.

    `lines` are the ids of the known resources.
    """
    found = _READERS[topic](call)
    listed = {str(one["id"]) for one in found} if topic in _PATHS else lines
    for name in lines:
        if name not in listed:
            try:
                found.append(call.console.get(_PATHS[topic](name)))
            except exits.CommandExit as end:
                if end.code != exits.NOT_FOUND:
                    raise
    return found


def _read_all(call: CommandContext, path: str, state: str | None = None) -> list[Document]:
    what = f"items at {path}; the rest appear when they change"
    return output.get_items(call, path, {"state": state}, MAX_ROWS, what)


_READERS: Mapping[str, Callable[[CommandContext], list[Any]]] = {
    "switches": lambda call: [
        *_read_all(call, "/switches/", "engaged"),
        *_read_all(call, "/switches/", "ramping"),
    ],
    "ramps": lambda call: _read_all(call, "/ramps/", "live"),
    "breakers": lambda call: _read_all(call, "/breakers/"),
    "dlq": lambda call: [
        *call.console.get("/dlq/", kind=list),
        *_read_all(call, "/dlq/jobs/", "live"),
    ],
    "slo": lambda call: _read_all(call, "/slos/"),
    "degradation": lambda call: [call.console.get("/degradation")],
}
_PATHS: Mapping[str, Callable[[str], str]] = {
    "switches": lambda name: f"{switch_path(name)}/",
    "ramps": lambda name: f"/ramps{url_path(name)}/",
}
"""Path of one resource, for topics whose lists contain live resources only. A resource that has
left its list is read by this path."""
