"""Registry of message templates by event, from the apps' modules `message_templates`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from controlplane.core.registry import KindRegistry

Facts = Mapping[str, Any]
"""JSON values of an event, which fill its template."""
Field = tuple[str, str | Callable[[Facts], str]]
"""A label, and the name of a fact or a function that returns the text ("" leaves the line out)."""

SEVERITIES = ("critical", "warning", "info")
IncidentAction = Literal["trigger", "acknowledge", "resolve"]


@dataclass(frozen=True)
class MessageTemplate:
    """The text of an event's message, and its delivery.

    `title` has `{fact}` placeholders, or is a function of the facts that returns the title.
    `buttons` are actions for signed-in people, or a function of the facts that returns them.
    """

    event: str
    icon: str
    title: str | Callable[[Facts], str]
    fields: tuple[Field, ...] = ()
    severity: str = "info"
    when: str = ""
    """The reason for the message, as docs/events.md shows it."""
    buttons: tuple[str, ...] | Callable[[Facts], tuple[str, ...]] = ()
    superseded_by: frozenset[str] = frozenset()
    """Later events about the same subject that make the message obsolete if it is undelivered."""
    changes_state: bool = True
    """True if the event changes the state that the subject's last message shows."""
    is_broadcast: bool = False
    """True to show the message in the channel, too, not only in its subject's thread."""
    starts_thread: bool = False
    """True if the message usually starts a thread, so that the channel shows it anyway."""
    is_digestible: bool = False
    """True to combine the message with others if too many wait for one destination."""
    is_urgent: bool = False
    """True to send the message before others, because it calls people."""
    is_ephemeral: bool = False
    """True to discard the message silently once it is late."""
    incident_action: IncidentAction = "trigger"
    """Effect on the subject's incident at an on-call service."""

    def buttons_for(self, facts: Facts) -> tuple[str, ...]:
        return self.buttons(facts) if callable(self.buttons) else self.buttons


MESSAGE_TEMPLATES = KindRegistry[MessageTemplate](
    "message_templates", name=lambda template: template.event
)


def severity_of(event: str) -> str:
    template = MESSAGE_TEMPLATES.get(event)
    return template.severity if template else "info"


def incident_action_of(event: str) -> IncidentAction:
    """Return what an event does to an incident at an on-call service, such as resolve it."""
    template = MESSAGE_TEMPLATES.get(event)
    return template.incident_action if template else "trigger"


def events_where(condition: Callable[[MessageTemplate], bool]) -> list[str]:
    return [event for event, template in MESSAGE_TEMPLATES.items() if condition(template)]


def format_time(value: Any) -> str:
    """Format an RFC 3339 timestamp as `2026-11-21 02:11:00 UTC`; return other values as text."""
    try:
        return f"{datetime.fromisoformat(str(value)):%Y-%m-%d %H:%M:%S} UTC"
    except ValueError:
        return str(value)
