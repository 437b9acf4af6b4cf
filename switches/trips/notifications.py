"""Messages about trips, in the episode's thread or to people who decide."""

import hashlib
from collections.abc import Mapping
from datetime import datetime
from itertools import accumulate
from typing import Any
from urllib.parse import quote_plus, urlencode

from controlplane.core.canonical import timestamp
from controlplane.core.escalations import services as escalation
from controlplane.core.outbox import services as outbox
from switches.models import Trip
from switches.scopes import SCOPES

from .history import SUBJECT

# Suffix of event and audit action, by outcome.
ACTIONS = {
    Trip.Outcome.TRIPPED: "tripped",
    Trip.Outcome.ENGAGED: "engaged",
    Trip.Outcome.PERSON: "waits",
    Trip.Outcome.REFUSED: "refused",
}
SEVERITY = "critical"
MAX_LINK_BYTES = 900  # Slack limits a message section to 3000.


def announce(row: Trip, now: datetime, *, alone: bool = False) -> int:
    """Announce a new trip in its episode's thread and return the number of destinations.

    A trip that engaged nothing is announced once an hour per switch and source, or always if
    `alone`.
    """
    name = ACTIONS[Trip.Outcome(row.outcome)]
    event_key = f"trip:{row.pk}"
    if row.outcome != Trip.Outcome.TRIPPED and not alone:
        same = f"{name}\n{row.switch}\n{row.source}\n{row.episode_id}\n{now:%Y%m%d%H}"
        event_key = f"trip.{name}:{hashlib.sha256(same.encode()).hexdigest()}"
    return outbox.announce(
        event=f"trip.{name}",
        event_key=event_key,
        scope=row.switch.partition(":")[0],
        subject=f"episode:{row.episode_id}" if row.episode_id else f"{SUBJECT}{row.pk}",
        resource=row.switch,
        facts=message_facts(row),
        now=now,
    )


def announce_resolved(row: Trip, now: datetime) -> None:
    """Announce in the episode's thread that the alert resolved; the switch stays engaged."""
    outbox.announce(
        event="trip.resolved",
        event_key=f"trip:{row.pk}:resolved:{timestamp(now)}",
        scope=row.switch.partition(":")[0],
        subject=f"episode:{row.episode_id}",
        resource=row.switch,
        facts=message_facts(row),
        now=now,
    )


def open_escalation(row: Trip, more: Mapping[str, Any], *, announced: bool, now: datetime) -> None:
    """Open an escalation that lasts until a person engages the switch or dismisses the trip."""
    escalation.open_escalation(
        subject=f"{SUBJECT}{row.pk}",
        event="trip.waits",
        severity=SEVERITY,
        scope=row.switch.partition(":")[0],
        resource=row.switch,
        facts={**message_facts(row), **more},
        announced=announced,
        now=now,
    )


def message_facts(row: Trip) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "trip": row.pk,
        "switch": row.switch,
        "source": row.source,
        "fingerprint": row.fingerprint,
        "reason": row.reason,
        "why": row.why,
        "by": row.by,
        "path": page_path(row),
    }
    if row.episode_id:
        facts["episode"] = row.episode_id
    return facts


def page_path(row: Trip) -> str:
    """Return the path of the page where a person handles the trip.

    This is the switch's page, or without an episode the engage form; for a refused trip without an
    episode, the trips page.
    """
    scope, _, key = row.switch.partition(":")
    if row.episode_id:
        return f"/switches/{scope}/{key}/"
    return engage_path(row) if row.outcome != Trip.Outcome.REFUSED else "/trips/"


def engage_path(row: Trip) -> str:
    """Return the path of the engage form for the trip; for an unknown scope, of the trips page."""
    scope, _, key = row.switch.partition(":")
    if scope not in SCOPES:
        return "/trips/"
    begin = f"/switches/engage/?{urlencode({'scope': scope, 'key': key})}&reason="
    return f"{begin}{_encode_within(row.reason, MAX_LINK_BYTES - len(begin))}"


def _encode_within(text: str, max_bytes: int) -> str:
    if len(encoded := quote_plus(text)) <= max_bytes:
        return encoded
    sizes = accumulate(len(quote_plus(character)) for character in text)
    kept = sum(size <= max_bytes - len(quote_plus("…")) for size in sizes)
    return quote_plus(f"{text[:kept]}…")
