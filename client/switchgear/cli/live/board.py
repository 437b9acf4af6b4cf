"""What is known of each topic, told as lines when it changes."""

from collections.abc import Iterable, Mapping
from typing import Any

from switchgear.cli import exits
from switchgear.cli.call import Call
from switchgear.cli.live import lines, reading
from switchgear.cli.words import Cell, Part, cell

REFETCHED = "refetched"


class Board:
    """Prints a line for whatever is otherwise than it was known to be."""

    def __init__(self, call: Call, topics: Iterable[str], *, chosen: bool) -> None:
        self.topics = list(topics)
        self._call = call
        self.chosen = chosen
        """Whether somebody named the topics: then each has to be readable."""
        self._known: dict[str, dict[str, str]] = {}

    def take(self, message: Mapping[str, Any]) -> None:
        """A message of a socket about one resource."""
        topic, one = message["topic"], message["data"]
        known = self._known.setdefault(topic, {})
        if self._call.screen.as_json:
            self._call.screen.json_line(message)
        if str(message["event"]).endswith(".removed"):
            if known.pop(str(one["id"]), None) is not None:
                self._tell(topic, cell(Part("removed  ", "warn"), one["id"]), message["at"])
            return
        said = lines.line(topic, one, self._call.clock)
        name = lines.key(topic, one)
        if known.get(name) != str(said):
            known[name] = str(said)
            self._tell(topic, said, message["at"])

    def refetch(self, topics: Iterable[str] | None = None) -> None:
        """Read these anew, or all; tell what changed, and the first time what is not normal."""
        for topic in list(self.topics if topics is None else topics):
            try:
                found = reading.read(self._call, topic, self._known.get(topic, {}))
            except exits.Ended as end:
                if end.code != exits.NO_RIGHTS or self.chosen or end.problem.get("status") == 401:
                    raise
                self._leave_out(topic, end)
                continue
            self._compare(topic, found)

    def _compare(self, topic: str, found: list[Any]) -> None:
        before, now = self._known.get(topic, {}), dict[str, str]()
        for one in found:
            name, said = lines.key(topic, one), lines.line(topic, one, self._call.clock)
            now[name] = str(said)
            known = before.get(name)
            is_news = not lines.is_normal(topic, one) if known is None else known != str(said)
            if not is_news:
                continue
            if self._call.screen.as_json:
                at = self._call.console.now.isoformat()
                message = {"topic": topic, "event": REFETCHED, "at": at, "data": one}
                self._call.screen.json_line(message)
            self._tell(topic, said, None)
        self._known[topic] = now

    def _leave_out(self, topic: str, end: exits.Ended) -> None:
        self.topics.remove(topic)
        if not self.topics:
            raise end
        self._call.screen.note(f"Without {topic}: {end}")

    def _tell(self, topic: str, said: Cell, at: Any) -> None:
        if not self._call.screen.as_json:
            self._call.screen.event(self._call.clock.second(at), topic, said)
