"""Parser of Slack's interaction payloads. Pure."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

MAX_FIELDS = 10
KIND = "block_actions"


class Unreadable(ValueError):
    """The body is signed but not a valid interaction payload."""


@dataclass(frozen=True)
class Pressed:
    """A pressed button: its name and value, who pressed it, and the URL for the reply."""

    name: str
    value: Mapping[str, Any]
    slack_user_id: str
    response_url: str


def read(body: bytes) -> Pressed | None:
    """Return the pressed button; None for other kinds of interaction.

    Raises :class:`Unreadable`.
    """
    payload = _payload(body)
    actions = payload.get("actions")
    if payload.get("type") != KIND or not isinstance(actions, list) or not actions:
        return None
    action = _object(actions[0])
    return Pressed(
        name=_text(action.get("action_id")),
        value=_value(action.get("value")),
        slack_user_id=_text(_object(payload.get("user")).get("id")),
        response_url=_text(payload.get("response_url")),
    )


def _payload(body: bytes) -> Mapping[str, Any]:
    try:
        form = parse_qs(body.decode(), strict_parsing=True, max_num_fields=MAX_FIELDS)
        (text,) = form["payload"]
        payload = json.loads(text)
    except (ValueError, KeyError, RecursionError) as error:
        raise Unreadable("There is no payload in it.") from error
    if not isinstance(payload, dict):
        raise Unreadable("The payload is no JSON object.")
    return payload


def _value(text: Any) -> Mapping[str, Any]:
    """Return a button's JSON object, empty if it is invalid."""
    try:
        return _object(json.loads(_text(text)))
    except (ValueError, RecursionError):
        return {}


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
