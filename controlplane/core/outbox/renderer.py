"""Renderer of an event and its facts as a message: a title, lines and a link.

Each transport lays out and escapes the message in its own way.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from controlplane.core.message_templates import (
    MESSAGE_TEMPLATES,
    Facts,
    MessageTemplate,
    format_time,
)
from controlplane.core.outbox.models import OutboxMessage

MAX_LINE_LENGTH = 500
MAX_LINES = 10
MAX_LISTED = 20
"""Maximum number of items listed by name; messages count the rest."""

LEFT_OUT = "left_out"
"""Key of the fact that counts the superseded messages replaced by this one."""
REPEAT = "may_be_repeat"
"""Key of the fact that is true if an earlier attempt may have delivered the message."""


ComputeFacts = Callable[[Facts], Facts]
_late_facts: dict[str, ComputeFacts] = {}


@dataclass(frozen=True)
class RenderedMessage:
    """A message ready to be laid out: its title, (label, text) lines, and path in the console."""

    icon: str
    title: str
    lines: tuple[tuple[str, str], ...]
    path: str


def render(event: str, facts: Facts) -> RenderedMessage:
    """Return the message of an event; without a template, its lines show all the facts."""
    template = MESSAGE_TEMPLATES.get(event) or _default_template(event, facts)
    lines = [
        (label, _clip(fact(facts)) if callable(fact) else _text(fact, facts))
        for label, fact in template.fields
    ]
    if left_out := facts.get(LEFT_OUT):
        updates = "1 earlier update" if left_out == 1 else f"{left_out:,} earlier updates"
        lines.append(("Note", f"{updates} not sent"))
    if facts.get(REPEAT):
        lines.append(("Note", "possible duplicate: an earlier attempt may have been delivered"))
    return RenderedMessage(
        icon=template.icon,
        title=_clip(_format_title(template, facts)),
        lines=tuple((label, text) for label, text in lines if text),
        path=str(facts.get("path") or "/"),
    )


def compute_late(event: str) -> Callable[[ComputeFacts], ComputeFacts]:
    """Return a decorator for a function that computes an event's facts when its e-mail is sent.

    The outbox never stores such facts, for example the link that activates an account.
    """

    def register(compute: ComputeFacts) -> ComputeFacts:
        _late_facts[event] = compute
        return compute

    return register


def load_facts(message: OutboxMessage) -> Facts:
    compute = _late_facts.get(message.event)
    return {**message.payload, **compute(message.payload)} if compute else message.payload


def buttons_for(event: str, facts: Facts) -> tuple[str, ...]:
    template = MESSAGE_TEMPLATES.get(event)
    return template.buttons_for(facts) if template else ()


def is_broadcast(event: str, severity: str) -> bool:
    """Return True if a Slack message, as a reply in a thread, must also appear in the channel."""
    template = MESSAGE_TEMPLATES.get(event)
    if template is not None and template.is_broadcast:
        return True
    return severity == "critical" and not (template is not None and template.starts_thread)


def _default_template(event: str, facts: Facts) -> MessageTemplate:
    keys = [
        key
        for key, value in facts.items()
        if key != REPEAT and isinstance(value, str | int | float)
    ]
    fields = tuple((key.replace("_", " "), key) for key in keys[:MAX_LINES])
    return MessageTemplate(event, "ℹ️", event.replace("{", "{{").replace("}", "}}"), fields)


def _format_title(template: MessageTemplate, facts: Facts) -> str:
    if callable(template.title):
        return template.title(facts)
    whole_numbers = {
        key: int(fact) if isinstance(fact, float) and fact.is_integer() else fact
        for key, fact in facts.items()
    }
    return template.title.format_map(defaultdict(lambda: "?", whole_numbers))


def _text(fact: str, facts: Facts) -> str:
    value = facts.get(fact)
    if value is None:
        return ""
    is_time = fact == "at" or fact.endswith("_at")
    return _clip(format_time(value) if is_time else str(value))


def _clip(text: str) -> str:
    return text if len(text) <= MAX_LINE_LENGTH else f"{text[: MAX_LINE_LENGTH - 1]}…"
