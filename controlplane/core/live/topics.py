"""Registry of the topics of live updates: their scopes, and functions that read resources.

An app registers its topics in its module `topics`, which the web process imports.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

Resource = Mapping[str, Any]
Read = Callable[[Sequence[str], datetime], Mapping[str, Resource]]
"""Function that returns the current resources of these ids, without deleted ones."""


@dataclass(frozen=True)
class Topic:
    """A topic of live updates; any one of `scopes` permits subscribing to it.

    `event` is the type of its messages about changes. `read` loads changed resources by id; None
    for a topic without notifications.
    """

    name: str
    scopes: frozenset[str]
    event: str
    read: Read | None = None

    @property
    def event_of_removal(self) -> str:
        return f"{self.event.partition('.')[0]}.removed"


DEGRADATION = Topic(
    "degradation", frozenset({"breakers:read", "switches:read"}), "degradation.changed"
)
"""Topic of the degradation, which each process sends even while the database is down."""

_topics: dict[str, Topic] = {
    topic.name: topic
    for topic in (Topic("slo", frozenset({"slo:read"}), "slo.changed"), DEGRADATION)
}


def register(name: str, *, scope: str, event: str, read: Read) -> None:
    """Register a topic of live updates: `event` is its messages' type, `read` loads resources."""
    _topics[name] = Topic(name, frozenset({scope}), event, read)


def list_topics() -> Collection[Topic]:
    """Return all topics, sorted by name."""
    return [_topics[name] for name in sorted(_topics)]


def find_allowed_topics(scopes: Collection[str]) -> frozenset[str]:
    """Return the names of the topics that these scopes permit."""
    return frozenset(topic.name for topic in list_topics() if not topic.scopes.isdisjoint(scopes))
