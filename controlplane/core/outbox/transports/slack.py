"""Slack, by bot token or incoming webhook."""

import json
import re
from collections.abc import Mapping
from typing import Any

from django.conf import settings

from controlplane.core.outbox import wordings
from controlplane.core.outbox.models import OutboxMessage
from controlplane.core.outbox.transports.failures import PermanentFailure, TransientFailure
from controlplane.core.outbox.transports.outbound import Answer, post

DESTINATION = "slack"
LONGEST_HEADER = 150

PERMANENT = {
    "account_inactive": "the bot's account is deactivated; make a new token",
    "action_prohibited": "an administrator of the workspace forbids it",
    "channel_is_archived": "unarchive the channel or name another one",
    "channel_not_found": "set SLACK_CHANNEL to a channel the bot can see",
    "invalid_auth": "set SLACK_BOT_TOKEN to a valid token",
    "invalid_blocks": "Slack does not accept the message's layout",
    "invalid_blocks_format": "Slack does not accept the message's layout",
    "invalid_payload": "Slack does not accept the message",
    "invalid_token": "set SLACK_WEBHOOK_URL to a valid webhook",
    "is_archived": "unarchive the channel or name another one",
    "missing_scope": "give the bot the scope chat:write",
    "msg_too_long": "the message is too long for Slack",
    "no_active_hooks": "the webhook is disabled; make a new one",
    "no_permission": "give the bot the scope chat:write",
    "no_service": "the webhook is disabled or removed; make a new one",
    "no_service_id": "set SLACK_WEBHOOK_URL to a valid webhook",
    "no_team": "set SLACK_WEBHOOK_URL to a valid webhook",
    "no_text": "Slack does not accept the message",
    "not_authed": "set SLACK_BOT_TOKEN",
    "not_in_channel": "invite the bot to the channel",
    "org_login_required": "the workspace is being moved; make a new token afterwards",
    "posting_to_general_channel_denied": "name another channel",
    "restricted_action": "an administrator of the workspace forbids it",
    "team_disabled": "the workspace is disabled",
    "team_not_found": "set SLACK_WEBHOOK_URL to a valid webhook",
    "token_expired": "set SLACK_BOT_TOKEN to a new token",
    "token_revoked": "set SLACK_BOT_TOKEN to a new token",
    "user_not_found": "set SLACK_WEBHOOK_URL to a valid webhook",
}
"""Slack's codes that a repeat can't help, and what to do. Codes not known here are tried again."""

_CODE = re.compile(r"[a-z][a-z_]{1,60}")
_CALL_EVERYBODY = re.compile(r"@(?=channel|here|everyone|group)", re.IGNORECASE)
_TRANSIENT_STATUSES = {408, 425, 429}


def configured() -> bool:
    """Whether the environment names a bot token or a webhook."""
    return bool(settings.SLACK.bot_token or settings.SLACK.webhook_url)


def reaches(destination: str) -> bool:
    return configured() if destination == DESTINATION else bool(settings.SLACK.bot_token)


def secrets() -> list[str]:
    slack = settings.SLACK
    return [text for text in (slack.bot_token, slack.webhook_url, slack.signing_secret) if text]


def send(message: OutboxMessage) -> None:
    """Post one message. Raises a failure that says whether a repeat can help."""
    slack = settings.SLACK
    if slack.bot_token:
        url = f"{slack.api_url.rstrip('/')}/chat.postMessage"
        said = {"channel": slack.channel, "unfurl_links": False, **render(message)}
        answer = post(url, said, {"Authorization": f"Bearer {slack.bot_token}"})
    else:
        answer = post(slack.webhook_url, render(message), {})
    _judge(answer, must_say_ok=bool(slack.bot_token))


def render(message: OutboxMessage) -> dict[str, Any]:
    """The message in Block Kit, with a text for where blocks are not shown."""
    notice = wordings.notice(message.event, message.payload)
    environment = settings.ENVIRONMENT_NAME
    loud = environment.upper() if environment == "production" else environment
    title = f"{notice.icon} [{loud}] {notice.title}"
    lines = [f"*{escape(label)}:* {escape(text)}" for label, text in notice.lines]
    small = f"Switchgear · {escape(loud)} · {message.created_at:%Y-%m-%d %H:%M:%S} UTC"
    if settings.PUBLIC_URL:
        small += f" · <{settings.PUBLIC_URL.rstrip('/')}{escape(notice.path)}|Open the console>"
    blocks: list[dict[str, Any]] = [{"type": "header", "text": _plain_text(title)}]
    blocks += [{"type": "section", "text": _marked(line)} for line in lines]
    blocks.append({"type": "context", "elements": [_marked(small)]})
    return {"text": "\n".join([escape(title), *lines]), "blocks": blocks}


def escape(text: str) -> str:
    """Text from people as Slack has to get it: no markup, no links, no call to a whole channel."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _CALL_EVERYBODY.sub("@\N{WORD JOINER}", text)


def _plain_text(text: str) -> dict[str, Any]:
    clipped = text if len(text) <= LONGEST_HEADER else f"{text[: LONGEST_HEADER - 1]}…"
    return {"type": "plain_text", "text": _CALL_EVERYBODY.sub("@\N{WORD JOINER}", clipped)}


def _marked(text: str) -> dict[str, Any]:
    # Verbatim: Slack makes no links and mentions of its own out of plain words.
    return {"type": "mrkdwn", "text": text, "verbatim": True}


def _judge(answer: Answer, *, must_say_ok: bool) -> None:
    """Return if Slack took it, else raise. The API says `ok` in JSON, a webhook with its status."""
    said = _json(answer.body)
    ok = said.get("ok", None if must_say_ok else True)
    if 200 <= answer.status < 300 and ok is True:
        return
    code = _code(said, answer.body)
    if code in PERMANENT:
        raise PermanentFailure(f"Slack says {code}: {PERMANENT[code]}")
    reason = f"HTTP {answer.status} from Slack, {code or 'without an error code'}"
    if answer.status in _TRANSIENT_STATUSES or answer.status >= 500 or answer.status < 300:
        raise TransientFailure(reason, retry_after_seconds=answer.retry_after_seconds)
    raise PermanentFailure(reason)


def _json(body: bytes) -> Mapping[str, Any]:
    try:
        said = json.loads(body)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


def _code(said: Mapping[str, Any], body: bytes) -> str:
    """Slack's own error code, if the answer holds one; nothing else of the answer is repeated."""
    code = said.get("error", body.decode("utf-8", "replace").strip())
    return code if isinstance(code, str) and _CODE.fullmatch(code) else ""
