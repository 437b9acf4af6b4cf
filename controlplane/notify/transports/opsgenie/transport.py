"""The Opsgenie transport: one alert per subject, identified by its alias.

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
from controlplane.core.rate_limiter import RateLimit
from controlplane.notify.transports import incidents
from controlplane.notify.transports.base import TRANSPORTS, DocsRow, Transport
from controlplane.notify.transports.channel_settings import ChannelSettings, SettingSpec

KEY = "opsgenie"
API_URLS = {"us": "https://api.opsgenie.com", "eu": "https://api.eu.opsgenie.com"}
PATH = "/v2/alerts"
ACTIONS = {"acknowledge": "acknowledge", "resolve": "close"}
MAX_MESSAGE_LENGTH = 130
MAX_DESCRIPTION_LENGTH = 15_000
MAX_SOURCE_LENGTH = 100
PRIORITIES = {"critical": "P1", "warning": "P3", "info": "P5"}
"""Opsgenie's priority for each of our severities."""

API_KEY = SettingSpec(
    name="opsgenie_api_key",
    label="Opsgenie API key",
    noun="an API key",
    help_text="Key of an API integration. Unchanged if left out in a PUT.",
    pattern=r"[0-9A-Za-z-]{20,100}",
    mistake="Must be the API key of an integration: letters, digits and hyphens.",
    is_secret=True,
)
REGION = incidents.region_setting(KEY, "Opsgenie")
SETTINGS = ChannelSettings(API_KEY, REGION)


def send(message: OutboxMessage, *, transport: httpx.AsyncBaseTransport | None = None) -> None:
    """Create, acknowledge or close an alert; raise a `DeliveryFailure` unless this is accepted."""
    values = incidents.read_settings(message.destination, SETTINGS, API_KEY)
    base = settings.OPSGENIE_API_URL or API_URLS[values[REGION.name]]
    path, body = request_of(message)
    headers = {"Authorization": f"GenieKey {values[API_KEY.name]}"}
    incidents.post_event("Opsgenie", f"{base}{path}", body, headers, transport=transport)


def request_of(message: OutboxMessage) -> tuple[str, Mapping[str, Any]]:
    action = incident_action_of(message.event)
    alias = incidents.incident_key(message)
    rendered = renderer.render(message.event, message.payload)
    source = incidents.console_name()[:MAX_SOURCE_LENGTH]
    if action != "trigger":
        path = f"{PATH}/{quote(alias, safe='')}/{ACTIONS[action]}?identifierType=alias"
        return path, {"source": source, "note": rendered.title}
    lines = [f"{label}: {text}" for label, text in rendered.lines]
    return PATH, {
        "message": rendered.title[:MAX_MESSAGE_LENGTH],
        "alias": alias,
        "description": "\n".join([*lines, console_url(rendered.path)])[:MAX_DESCRIPTION_LENGTH],
        "details": incidents.details_of(message, rendered),
        "priority": PRIORITIES.get(message.severity, "P3"),
        "source": source,
        "tags": [message.event],
    }


TRANSPORTS.register(
    Transport(
        key=KEY,
        label="Opsgenie",
        position=50,
        reaches=SETTINGS.reaches,
        send=send,
        secrets=SETTINGS.seen_secrets,
        limit=RateLimit(2, 20),
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
