"""Parser of Slack's interaction payloads. Pure."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

MAX_FIELDS = 10
KIND = "block_actions"


class InvalidPayload(ValueError):
    """A signed request body that is not an interaction payload."""


@dataclass(frozen=True)
class ButtonPress:
    """A pressed button: its name and value, the Slack user, and the URL for the reply."""

    name: str
    value: Mapping[str, Any]
    slack_user_id: str
    response_url: str


def parse_payload(body: bytes) -> ButtonPress | None:
    """Return the pressed button, None for other interactions; raise :class:`InvalidPayload`."""
    payload = _decode_payload(body)
    actions = payload.get("actions")
    if payload.get("type") != KIND or not isinstance(actions, list) or not actions:
        return None
    action = _as_object(actions[0])
    try:
        value = _as_object(json.loads(_as_text(action.get("value"))))
    except (ValueError, RecursionError):
        value = {}
    return ButtonPress(
        name=_as_text(action.get("action_id")),
        value=value,
        slack_user_id=_as_text(_as_object(payload.get("user")).get("id")),
        response_url=_as_text(payload.get("response_url")),
    )


def _decode_payload(body: bytes) -> Mapping[str, Any]:
    try:
        form = parse_qs(body.decode(), strict_parsing=True, max_num_fields=MAX_FIELDS)
        (text,) = form["payload"]
        payload = json.loads(text)
    except (ValueError, KeyError, RecursionError) as error:
        raise InvalidPayload("The request has no payload.") from error
    if not isinstance(payload, dict):
        raise InvalidPayload("The payload is not a JSON object.")
    return payload


def _as_object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else ""
