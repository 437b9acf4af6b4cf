"""The Opsgenie transport: an alert for each subject, by its alias.

https://docs.opsgenie.com/docs/alert-api
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import httpx
from django.conf import settings

from controlplane.core.console_urls import console_url
from controlplane.core.message_templates import incident_action_of
from controlplane.core.outbox import renderer
from controlplane.core.outbox.models import OutboxMessage
from controlplane.notify.models.targets import Target
from controlplane.notify.transports import incidents
from controlplane.notify.transports.base import TRANSPORTS, DocsRow, Transport
from controlplane.notify.transports.channel_settings import ChannelSettings, Field
from controlplane.notify.transports.channels import SeenSecrets, find_channel
from controlplane.notify.transports.failures import PermanentFailure
from controlplane.notify.transports.pacing import Limit

KEY = "opsgenie"
API_URLS = {"us": "https://api.opsgenie.com", "eu": "https://api.eu.opsgenie.com"}
PATH = "/v2/alerts"
ACTIONS = {"acknowledge": "acknowledge", "resolve": "close"}
MAX_MESSAGE_LENGTH = 130
MAX_DESCRIPTION_LENGTH = 15_000
MAX_SOURCE_LENGTH = 100
PRIORITIES = {"critical": "P1", "warning": "P3", "info": "P5"}
"""Opsgenie's priorities by our severities."""

API_KEY = Field(
    name="opsgenie_api_key",
    label="Opsgenie API key",
    noun="an API key",
    help_text="Of an API integration. Left out in a PUT, it stays as it is.",
    pattern=r"[0-9A-Za-z-]{20,100}",
    mistake="The API key of an integration: letters, digits and hyphens.",
    is_secret=True,
)
REGION = Field(
    name="opsgenie_region",
    label="Opsgenie region",
    noun="a region",
    help_text="us (if left out) or eu.",
    choices=(("us", "United States"), ("eu", "Europe")),
)
SETTINGS = ChannelSettings(API_KEY, REGION)

_seen = SeenSecrets()


def reaches(destination: str) -> bool:
    """Return whether the destination is an Opsgenie channel with an API key."""
    channel = find_channel(destination)
    return channel is not None and SETTINGS.is_complete(channel)


def send(message: OutboxMessage, *, transport: httpx.AsyncBaseTransport | None = None) -> None:
    """Create, acknowledge or close an alert; raises a `DeliveryFailure`."""
    channel = find_channel(message.destination)
    values = _values(channel) if channel else {}
    if not values.get(API_KEY.name):
        raise PermanentFailure(f"{message.destination} has no API key")
    base = settings.OPSGENIE_API_URL or API_URLS[values[REGION.name]]
    path, body = request_of(message)
    headers = {"Authorization": f"GenieKey {values[API_KEY.name]}"}
    incidents.post_event("Opsgenie", f"{base}{path}", body, headers, transport=transport)


def request_of(message: OutboxMessage) -> tuple[str, Mapping[str, Any]]:
    """Return the path and the body of the request for a message."""
    action = incident_action_of(message.event)
    alias = incidents.incident_key(message)
    rendered = renderer.render(message.event, message.payload)
    source = incidents.source()[:MAX_SOURCE_LENGTH]
    if action != "trigger":
        path = f"{PATH}/{quote(alias, safe='')}/{ACTIONS[action]}?identifierType=alias"
        return path, {"source": source, "note": rendered.title}
    details = incidents.details_of(message, rendered)
    lines = [f"{label}: {text}" for label, text in rendered.lines]
    return PATH, {
        "message": rendered.title[:MAX_MESSAGE_LENGTH],
        "alias": alias,
        "description": "\n".join([*lines, console_url(rendered.path)])[:MAX_DESCRIPTION_LENGTH],
        "details": details,
        "priority": PRIORITIES.get(message.severity, "P3"),
        "source": source,
        "tags": [message.event],
    }


def _values(channel: Target) -> dict[str, str]:
    values = SETTINGS.values(channel)
    _seen.remember(values.get(API_KEY.name, ""))
    return values


TRANSPORTS.register(
    Transport(
        key=KEY,
        label="Opsgenie",
        position=50,
        reaches=reaches,
        send=send,
        secrets=_seen.all,
        limit=Limit(0.5, 20),
        address_examples=(KEY,),
        settings=SETTINGS,
        tracks_incidents=True,
        docs=(
            DocsRow(
                "Opsgenie",
                "a target with an API key",
                "one alert per subject: created, acknowledged, closed",
                "is sent again with the same `alias`, which changes nothing",
            ),
        ),
    )
)
