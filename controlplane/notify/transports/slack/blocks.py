"""Slack messages in Block Kit, with a plain text for clients without blocks."""

import json
import re
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from controlplane.core.outbox import renderer
from controlplane.core.outbox.models import OutboxMessage
from controlplane.core.outbox.renderer import RenderedMessage
from controlplane.notify.transports.identity import environment_name

MAX_HEADER_LENGTH = 150
MAX_TEXT_LENGTH = 3000
MAX_VALUE_LENGTH = 2000
MAX_BLOCKS = 50
"""Slack's limit of blocks per message; it rejects longer messages."""
NOT_LINES = 4
"""Number of blocks that are not lines: header, latest update, footer and buttons."""
VALUES = ("switch", "episode", "ramp", "approval", "escalation", "alert")
"""Names of the facts that a button's value contains besides the subject."""

_HALF_AN_ENTITY = re.compile(r"&[a-z]{0,3}$")
_CALL_EVERYBODY = re.compile(r"@(?=channel|here|everyone|group)", re.IGNORECASE)


@dataclass(frozen=True)
class Button:
    """A button of a Slack message; `asks` is the question to confirm the press.

    `style` is empty, primary or danger. The button is shown only if the message has the fact
    `needs`. `does` names the button's action if its name differs from the button's.
    """

    label: str
    style: str = ""
    asks: str = ""
    needs: str = ""
    does: str = ""


BUTTONS = {
    "acknowledge": Button("Acknowledge"),
    "extend": Button("Extend 24 h", asks="Keep it engaged for 24 hours longer?", needs="episode"),
    "approve": Button("Approve", "primary", asks="This is done immediately, in your name."),
    "sign": Button(
        "Sign", "primary", asks="You reviewed the action and agree with it.", does="approve"
    ),
    "deny": Button("Deny", "danger"),
    # No confirmation, because stopping is safe.
    "abort_ramp": Button("Abort ramp", "danger", needs="ramp"),
}


def render_message(message: OutboxMessage) -> dict[str, Any]:
    """Return a message in Block Kit with all its lines, without buttons."""
    notice = renderer.render(message.event, message.payload)
    title = f"{notice.icon} [{environment_name()}] {notice.title}"
    lines = _render_lines(notice)
    blocks: list[dict[str, Any]] = [{"type": "header", "text": _plain_text(title)}]
    blocks += [
        {"type": "section", "text": _mrkdwn(line)} for line in lines[: MAX_BLOCKS - NOT_LINES]
    ]
    blocks.append({"type": "context", "elements": [_mrkdwn(_footer(message, notice.path))]})
    return {"text": "\n".join([escape_text(title), *lines]), "blocks": blocks}


def render_head(message: OutboxMessage, latest: OutboxMessage) -> dict[str, Any]:
    """Return a thread's first message: state of the subject, title of `latest`, and buttons."""
    post = render_message(message)
    if latest is not message:
        notice = renderer.render(latest.event, latest.payload)
        line = escape_text(f"{notice.icon} {notice.title}")
        post["blocks"].insert(-1, {"type": "context", "elements": [_mrkdwn(line)]})
    if buttons := _render_buttons(message):
        block_id = f"actions-{latest.pk}"
        post["blocks"].append({"type": "actions", "block_id": block_id, "elements": buttons})
    return post


def render_reply(message: OutboxMessage) -> dict[str, Any]:
    """Return a reply in a thread, shorter than the first message."""
    notice = renderer.render(message.event, message.payload)
    text = "\n".join([f"*{escape_text(f'{notice.icon} {notice.title}')}*", *_render_lines(notice)])
    footer = _mrkdwn(_footer(message, notice.path))
    return {
        "text": _clip_text(text, MAX_TEXT_LENGTH),
        "blocks": [
            {"type": "section", "text": _mrkdwn(text)},
            {"type": "context", "elements": [footer]},
        ],
        "reply_broadcast": renderer.is_broadcast(message.event, message.severity),
    }


def escape_text(text: str) -> str:
    """Return text escaped for Slack: no markup, no links, and no mention of a whole channel."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _CALL_EVERYBODY.sub("@\N{WORD JOINER}", text)


def _render_lines(notice: RenderedMessage) -> list[str]:
    return [f"*{escape_text(label)}:* {escape_text(text)}" for label, text in notice.lines]


def _footer(message: OutboxMessage, path: str) -> str:
    at = f"{message.created_at:%Y-%m-%d %H:%M:%S} UTC"
    small = f"Switchgear · {escape_text(environment_name())} · {at}"
    if not settings.PUBLIC_URL:
        return small
    # A link that prefills a form may be too long: then drop the query, or link the home page.
    for linked_path in (path, path.partition("?")[0], "/"):
        url = f"{settings.PUBLIC_URL.rstrip('/')}{escape_text(linked_path)}"
        linked = f"{small} · <{url}|Open the console>"
        if _utf16_length(linked) <= MAX_TEXT_LENGTH:
            return linked
    return small


def _render_buttons(message: OutboxMessage) -> list[dict[str, Any]]:
    """Return the message's buttons whose facts it has; none if no signing secret is configured."""
    if not settings.SLACK.signing_secret:
        return []
    names = renderer.buttons_for(message.event, message.payload)
    shown = [
        _render_button(name, message)
        for name in names
        if (button := BUTTONS.get(name)) and (not button.needs or button.needs in message.payload)
    ]
    return [element for element in shown if len(element["value"]) <= MAX_VALUE_LENGTH]


def _render_button(name: str, message: OutboxMessage) -> dict[str, Any]:
    button, facts = BUTTONS[name], message.payload
    value = {"subject": message.subject, **{key: facts[key] for key in VALUES if key in facts}}
    element: dict[str, Any] = {
        "type": "button",
        "action_id": button.does or name,
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
    calm = _CALL_EVERYBODY.sub("@\N{WORD JOINER}", text)
    return {"type": "plain_text", "text": _clip_text(calm, MAX_HEADER_LENGTH)}


def _mrkdwn(text: str) -> dict[str, Any]:
    # Verbatim keeps Slack from turning plain words into links and mentions.
    return {"type": "mrkdwn", "text": _clip_text(text, MAX_TEXT_LENGTH), "verbatim": True}


def _clip_text(text: str, longest: int) -> str:
    """Return the text cut to `longest` code units, without half an entity (`&lt`) at its end."""
    if _utf16_length(text) <= longest:
        return text
    kept = text[: longest - 1]
    while _utf16_length(kept) >= longest:
        kept = kept[:-1]
    return f"{_HALF_AN_ENTITY.sub('', kept)}…"


def _utf16_length(text: str) -> int:
    """Return the length of the text in UTF-16 code units.

    It is unknown whether Slack counts code units or code points; code units are never fewer.
    """
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
