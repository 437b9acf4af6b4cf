"""The known state of each topic, printed as lines when it changes."""

from collections.abc import Iterable, Mapping
from typing import Any

from switchgear.cli import exits
from switchgear.cli.command_context import CommandContext
from switchgear.cli.formatting import Cell, StyledText, cell
from switchgear.cli.live import resource_lines, topic_reader

REFETCHED = "refetched"


class TopicBoard:
    """Prints a line for each resource whose line changed."""

    def __init__(self, call: CommandContext, topics: Iterable[str], *, chosen: bool) -> None:
        self.topics = list(topics)
        self._call = call
        self.chosen = chosen
        """True if the topics were named by the user: then each must be readable."""
        self._known: dict[str, dict[str, str]] = {}

    def handle_message(self, message: Mapping[str, Any]) -> None:
        """Handle a socket's message about one resource."""
        topic, one = message["topic"], message["data"]
        known = self._known.setdefault(topic, {})
        if self._call.screen.as_json:
            self._call.screen.json_line(message)
        if str(message["event"]).endswith(".removed"):
            if known.pop(str(one["id"]), None) is not None:
                self._print_line(
                    topic, cell(StyledText("removed  ", "warn"), one["id"]), message["at"]
                )
            return
        said = resource_lines.format_line(topic, one, self._call.clock)
        name = resource_lines.resource_key(topic, one)
        if known.get(name) != str(said):
            known[name] = str(said)
            self._print_line(topic, said, message["at"])

    def refetch(self, topics: Iterable[str] | None = None) -> None:
        """Read topics, or all, anew; print changes, and the first time whatever is not normal."""
        for topic in list(self.topics if topics is None else topics):
            try:
                found = topic_reader.read_topic(self._call, topic, self._known.get(topic, {}))
            except exits.CommandExit as end:
                if end.code != exits.NO_RIGHTS or self.chosen or end.problem.get("status") == 401:
                    raise
                self._leave_out(topic, end)
                continue
            self._compare(topic, found)

    def _compare(self, topic: str, found: list[Any]) -> None:
        before, now = self._known.get(topic, {}), dict[str, str]()
        for one in found:
            name, said = (
                resource_lines.resource_key(topic, one),
                resource_lines.format_line(topic, one, self._call.clock),
            )
            now[name] = str(said)
            known = before.get(name)
            is_news = (
                not resource_lines.is_normal(topic, one) if known is None else known != str(said)
            )
            if not is_news:
                continue
            if self._call.screen.as_json:
                at = self._call.console.now.isoformat()
                message = {"topic": topic, "event": REFETCHED, "at": at, "data": one}
                self._call.screen.json_line(message)
            self._print_line(topic, said, None)
        self._known[topic] = now

    def _leave_out(self, topic: str, end: exits.CommandExit) -> None:
        self.topics.remove(topic)
        if not self.topics:
            raise end
        self._call.screen.note(f"Without {topic}: {end}")

    def _print_line(self, topic: str, said: Cell, at: Any) -> None:
        if not self._call.screen.as_json:
            self._call.screen.event(self._call.clock.time_of_day(at), topic, said)
