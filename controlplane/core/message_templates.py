"""The registry of message templates: one for each event that is announced to people.

A template belongs to the app whose event it is, in a module named `message_templates`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from controlplane.core.registry import KindRegistry

Facts = Mapping[str, Any]
"""Plain JSON values that an event is announced with."""
Field = tuple[str, str | Callable[[Facts], str]]
"""A label, and the name of a fact or a function that returns the text (empty: no line)."""

SEVERITIES = ("critical", "warning", "info")
IncidentAction = Literal["trigger", "acknowledge", "resolve"]


@dataclass(frozen=True)
class MessageTemplate:
    """The text of an event's message and its place among other messages.

    `title` has `{facts}` in it. `severity` is critical, warning or info. `buttons` are actions for
    signed-in people, where a transport has buttons, or a function that returns them.
    """

    event: str
    icon: str
    title: str
    fields: tuple[Field, ...] = ()
    severity: str = "info"
    buttons: tuple[str, ...] | Callable[[Facts], tuple[str, ...]] = ()
    superseded_by: frozenset[str] = frozenset()
    """Later events about the same subject that make this one obsolete while it waits. Empty for the
    first and the last event of a subject, and for requests."""
    changes_state: bool = True
    """False if the state shown in the subject's last message still holds."""
    is_broadcast: bool = False
    """Show it in the whole channel, not only in the thread of its subject."""
    starts_thread: bool = False
    """It usually starts a thread, so the channel shows it without a broadcast."""
    is_digestible: bool = False
    """Combine it with others when too many wait for one destination."""
    is_urgent: bool = False
    """Send it before others: it calls people."""
    is_ephemeral: bool = False
    """Discard it silently once it is late."""
    incident_action: IncidentAction = "trigger"
    """Effect on its subject's incident at an on-call service."""

    def buttons_for(self, facts: Facts) -> tuple[str, ...]:
        return self.buttons(facts) if callable(self.buttons) else self.buttons


MESSAGE_TEMPLATES = KindRegistry[MessageTemplate](
    "message_templates", name=lambda template: template.event
)


def severity_of(event: str) -> str:
    """Return the severity of an event: critical, warning or info."""
    template = MESSAGE_TEMPLATES.get(event)
    return template.severity if template else "info"


def incident_action_of(event: str) -> IncidentAction:
    """Return what an event does to its subject's incident at an on-call service."""
    template = MESSAGE_TEMPLATES.get(event)
    return template.incident_action if template else "trigger"


def events_where(condition: Callable[[MessageTemplate], bool]) -> list[str]:
    """Return the events whose templates fulfil `condition`."""
    return [event for event, template in MESSAGE_TEMPLATES.items() if condition(template)]


def format_time(value: Any) -> str:
    """Format a timestamp: `2026-11-21T02:11:00.000000Z` → `2026-11-21 02:11:00 UTC`."""
    try:
        return f"{datetime.fromisoformat(str(value)):%Y-%m-%d %H:%M:%S} UTC"
    except ValueError:
        return str(value)
