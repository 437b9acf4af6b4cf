"""The topics of the contract: the required scopes and the reader of each one's resources.

An app registers its topics' readers in its module `topics`, which the web process imports.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

Resource = Mapping[str, Any]
Read = Callable[[Sequence[str], datetime], Mapping[str, Resource]]
"""Returns the present resources of these ids, without deleted ones."""


@dataclass(frozen=True)
class Topic:
    """A live topic; any one of `scopes` is enough to listen.

    `event` is the name of a change; `read` is None for a topic without notifications.
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
"""Sent by each process from its own state, also while the database is down."""

_topics: dict[str, Topic] = {
    topic.name: topic
    for topic in (
        Topic("slo", frozenset({"slo:read"}), "slo.changed"),
        DEGRADATION,
    )
}


def register(name: str, *, scope: str, event: str, read: Read) -> None:
    """Register a topic: `event` is sent with the result of `read` for each notified id."""
    _topics[name] = Topic(name, frozenset({scope}), event, read)


def known() -> Collection[Topic]:
    """Return all topics, sorted by name."""
    return [_topics[name] for name in sorted(_topics)]


def allowed(scopes: Collection[str]) -> frozenset[str]:
    """Return the names of the topics that these scopes may listen to."""
    return frozenset(topic.name for topic in known() if not topic.scopes.isdisjoint(scopes))
