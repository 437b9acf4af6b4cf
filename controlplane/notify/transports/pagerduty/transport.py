"""The PagerDuty transport: one incident per subject, by the Events API v2.

https://developer.pagerduty.com/docs/events-api-v2/overview/
"""

from typing import Any

import httpx
from django.conf import settings

from controlplane.core.canonical import timestamp
from controlplane.core.console_urls import console_url
from controlplane.core.message_templates import incident_action_of
from controlplane.core.outbox import renderer
from controlplane.core.outbox.models import OutboxMessage
from controlplane.core.rate_limiter import RateLimit
from controlplane.notify.transports import incidents
from controlplane.notify.transports.base import TRANSPORTS, DocsRow, Transport
from controlplane.notify.transports.channel_settings import ChannelSettings, SettingSpec

KEY = "pagerduty"
API_URLS = {"us": "https://events.pagerduty.com", "eu": "https://events.eu.pagerduty.com"}
PATH = "/v2/enqueue"
MAX_SUMMARY_LENGTH = 1024
SEVERITIES = {"critical": "critical", "warning": "warning", "info": "info"}
"""PagerDuty's severity for each of ours."""

ROUTING_KEY = SettingSpec(
    name="pagerduty_routing_key",
    label="PagerDuty routing key",
    noun="a routing key",
    help_text="Key of an Events API v2 integration. Unchanged if left out in a PUT.",
    placeholder="32 letters and digits",
    pattern=r"[0-9A-Za-z]{32}",
    mistake="Must be a routing key of the Events API v2: 32 letters and digits.",
    is_secret=True,
)
REGION = incidents.region_setting(KEY, "PagerDuty")
SETTINGS = ChannelSettings(ROUTING_KEY, REGION)


def send(message: OutboxMessage, *, transport: httpx.AsyncBaseTransport | None = None) -> None:
    """Trigger, acknowledge or resolve an incident; raise a `DeliveryFailure` unless accepted."""
    values = incidents.read_settings(message.destination, SETTINGS, ROUTING_KEY)
    base = settings.PAGERDUTY_API_URL or API_URLS[values[REGION.name]]
    body = {"routing_key": values[ROUTING_KEY.name], **event_of(message)}
    incidents.post_event("PagerDuty", f"{base}{PATH}", body, {}, transport=transport)


def event_of(message: OutboxMessage) -> dict[str, Any]:
    action = incident_action_of(message.event)
    event: dict[str, Any] = {
        "event_action": action,
        "dedup_key": incidents.incident_key(message),
        "client": "Switchgear",
    }
    if action != "trigger":
        return event
    rendered = renderer.render(message.event, message.payload)
    if url := console_url(rendered.path):
        event["client_url"] = url
    event["payload"] = {
        "summary": rendered.title[:MAX_SUMMARY_LENGTH],
        "source": incidents.console_name(),
        "severity": SEVERITIES.get(message.severity, "error"),
        "timestamp": timestamp(message.created_at),
        "class": message.event,
        "custom_details": incidents.details_of(message, rendered),
    }
    return event


TRANSPORTS.register(
    Transport(
        key=KEY,
        label="PagerDuty",
        position=40,
        reaches=SETTINGS.reaches,
        send=send,
        secrets=SETTINGS.seen_secrets,
        limit=RateLimit(2, 20),  # PagerDuty accepts about 120 events a minute per routing key.
        address_examples=(KEY,),
        settings=SETTINGS,
        tracks_incidents=True,
        docs=(
            DocsRow(
                "PagerDuty",
                "a target with a routing key",
                "one incident per subject: triggered, acknowledged, resolved",
                "is sent again with the same `dedup_key`, which changes nothing",
            ),
        ),
    )
)
