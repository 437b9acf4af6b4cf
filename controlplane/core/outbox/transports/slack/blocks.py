"""How a message looks in Slack: Block Kit, with a text for where blocks are not shown."""

import json
import re
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from controlplane.core.outbox import wordings
from controlplane.core.outbox.models import OutboxMessage

LONGEST_HEADER = 150
VALUES = ("switch", "episode", "approval", "escalation")
"""The facts that a button carries, beside the subject: what it needs to act."""

_CALL_EVERYBODY = re.compile(r"@(?=channel|here|everyone|group)", re.IGNORECASE)


@dataclass(frozen=True)
class Button:
    """A label, Slack's style for it (default, primary, danger), and a question if it asks first."""

    label: str
    style: str = ""
    asks: str = ""


BUTTONS = {
    "acknowledge": Button("Acknowledge"),
    "extend": Button("Extend 24 h", asks="Keep it engaged for 24 hours longer?"),
    "approve": Button("Approve", "primary", asks="It is carried out at once, in your name."),
    "deny": Button("Deny", "danger"),
}


def render(message: OutboxMessage) -> dict[str, Any]:
    """A message of its own, or at the head of a thread: all there is to know."""
    notice = wordings.notice(message.event, message.payload)
    title = f"{notice.icon} [{_environment()}] {notice.title}"
    lines = _lines(notice)
    blocks: list[dict[str, Any]] = [{"type": "header", "text": _plain_text(title)}]
    blocks += [{"type": "section", "text": _marked(line)} for line in lines]
    blocks.append({"type": "context", "elements": [_marked(_small(message, notice.path))]})
    return {"text": "\n".join([escape(title), *lines]), "blocks": blocks}


def head(message: OutboxMessage, latest: OutboxMessage) -> dict[str, Any]:
    """The head of a thread: the state of its subject, and what was said last if that is no state.

    With the buttons of the state, if clicks can be verified.
    """
    said = render(message)
    if latest is not message:
        notice = wordings.notice(latest.event, latest.payload)
        line = escape(f"{notice.icon} {notice.title}")
        said["blocks"].insert(-1, {"type": "context", "elements": [_marked(line)]})
    names = wordings.buttons_of(message.event) if settings.SLACK.signing_secret else ()
    buttons = [_button(name, message) for name in names if name in BUTTONS]
    if buttons:
        block_id = f"actions-{latest.pk}"
        said["blocks"].append({"type": "actions", "block_id": block_id, "elements": buttons})
    return said


def reply(message: OutboxMessage) -> dict[str, Any]:
    """What is said in a thread: short, the head above it has the rest."""
    notice = wordings.notice(message.event, message.payload)
    text = "\n".join([f"*{escape(f'{notice.icon} {notice.title}')}*", *_lines(notice)])
    clipped = text if len(text) <= 3000 else f"{text[:2999]}…"
    small = _small(message, notice.path)
    return {
        "text": clipped,
        "blocks": [
            {"type": "section", "text": _marked(clipped)},
            {"type": "context", "elements": [_marked(small)]},
        ],
        "reply_broadcast": wordings.is_loud(message.event, message.severity),
    }


def escape(text: str) -> str:
    """Text from people as Slack has to get it: no markup, no links, no call to a whole channel."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _CALL_EVERYBODY.sub("@\N{WORD JOINER}", text)


def _environment() -> str:
    name: str = settings.ENVIRONMENT_NAME
    return name.upper() if name == "production" else name


def _lines(notice: wordings.Notice) -> list[str]:
    return [f"*{escape(label)}:* {escape(text)}" for label, text in notice.lines]


def _small(message: OutboxMessage, path: str) -> str:
    at = f"{message.created_at:%Y-%m-%d %H:%M:%S} UTC"
    small = f"Switchgear · {escape(_environment())} · {at}"
    if settings.PUBLIC_URL:
        small += f" · <{settings.PUBLIC_URL.rstrip('/')}{escape(path)}|Open the console>"
    return small


def _button(name: str, message: OutboxMessage) -> dict[str, Any]:
    button, facts = BUTTONS[name], message.payload
    value = {"subject": message.subject, **{key: facts[key] for key in VALUES if key in facts}}
    element: dict[str, Any] = {
        "type": "button",
        "action_id": name,
        "text": _plain_text(button.label),
        "value": json.dumps(value, separators=(",", ":")),
    }
    if button.style:
        element["style"] = button.style
    if button.asks:
        element["confirm"] = {
            "title": _plain_text(f"{button.label}?"),
            "text": _plain_text(button.asks),
            "confirm": _plain_text(button.label),
            "deny": _plain_text("Cancel"),
        }
    return element


def _plain_text(text: str) -> dict[str, Any]:
    clipped = text if len(text) <= LONGEST_HEADER else f"{text[: LONGEST_HEADER - 1]}…"
    return {"type": "plain_text", "text": _CALL_EVERYBODY.sub("@\N{WORD JOINER}", clipped)}


def _marked(text: str) -> dict[str, Any]:
    # Verbatim: Slack makes no links and mentions of its own out of plain words.
    return {"type": "mrkdwn", "text": text, "verbatim": True}
