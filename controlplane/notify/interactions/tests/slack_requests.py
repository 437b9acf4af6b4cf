"""Signed requests of pressed buttons, as Slack sends them."""

import json
import time
from typing import Any
from urllib.parse import urlencode

from django.http import HttpResponse
from django.test import Client

from controlplane.core.outbox.models import OutboxMessage
from controlplane.notify.interactions.signatures import sign

SECRET = "8f742231b10e8888abcd99yyyzzz85a5"
PATH = "/slack/interactions"
FORM = "application/x-www-form-urlencoded"


def payload(name: str, value: Any, slack_user_id: str, response_url: str, **more: Any) -> bytes:
    """Return the body of a press, as documented under `block_actions`."""
    action = {
        "type": "button",
        "action_id": name,
        "value": json.dumps(value) if not isinstance(value, str) else value,
        "action_ts": "1548426417.840180",
    }
    content = {
        "type": "block_actions",
        "user": {"id": slack_user_id, "username": "whoever", "team_id": "T1"},
        "response_url": response_url,
        "actions": [action],
        **more,
    }
    return urlencode({"payload": json.dumps(content)}).encode()


def signed(body: bytes, *, at: float | None = None, secret: str = SECRET) -> dict[str, str]:
    """Return the headers of a body."""
    timestamp = str(int(time.time() if at is None else at))
    return {
        "X-Slack-Request-Timestamp": timestamp,
        "X-Slack-Signature": sign(secret, timestamp, body),
    }


def send(body: bytes, headers: dict[str, str], path: str = PATH) -> HttpResponse:
    return Client(raise_request_exception=False, enforce_csrf_checks=True).post(
        path, body, content_type=FORM, headers=headers
    )


class SlackUser:
    """A Slack user who presses buttons; `hooks` is the base URL of replies."""

    def __init__(self, slack_user_id: str, hooks: str) -> None:
        self.id = slack_user_id
        self.hooks = hooks

    def body(self, name: str, value: Any, **more: Any) -> bytes:
        address = more.pop("response_url", f"{self.hooks}/actions/T1/42/{self.id}")
        return payload(name, value, self.id, address, **more)

    def press(self, name: str, value: Any, **more: Any) -> str:
        """Press a button; return the reply, empty if there is none."""
        before = self.list_replies()
        body = self.body(name, value, trigger_id=str(time.monotonic_ns()), **more)
        response = send(body, signed(body))
        assert (response.status_code, response.content) == (200, b"")
        (reply,) = self.list_replies()[len(before) :] or [""]
        return reply

    def list_replies(self) -> list[str]:
        """Return all replies queued for the user, in order."""
        rows = OutboxMessage.objects.filter(destination=f"slack_reply:{self.id}").order_by("id")
        return [row.payload["said"] for row in rows]
