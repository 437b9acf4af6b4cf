"""Who hears of a trip: the thread of its episode, or whoever has to decide in a machine's stead."""

import hashlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import quote_plus, urlencode

from controlplane.core.canonical import timestamp
from controlplane.core.escalation import services as escalation
from controlplane.core.outbox import services as outbox
from switches.models import Trip
from switches.scopes import SCOPES
from switches.trips.history import SUBJECT

# outcome → what its event and its audit row are called
ACTIONS = {
    Trip.Outcome.TRIPPED: "tripped",
    Trip.Outcome.ENGAGED: "engaged",
    Trip.Outcome.PERSON: "waits",
    Trip.Outcome.REFUSED: "refused",
}
SEVERITY = "critical"
MAX_LINK_BYTES = 900  # bytes as they are sent: Slack takes 3000 for all that a message's part says


def announce(row: Trip, now: datetime, *, alone: bool = False) -> int:
    """Tell of a new trip, in the episode's thread if it has one; returns how many destinations.

    A machine that keeps asking for what it does not get, or for what is so already, is told of
    once an hour, unless this trip is to be told of `alone`.
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
        facts=facts(row),
        now=now,
    )


def announce_resolved(row: Trip, now: datetime) -> None:
    """Tell the thread that the alert is over, and that this releases nothing."""
    outbox.announce(
        event="trip.resolved",
        event_key=f"trip:{row.pk}:resolved:{timestamp(now)}",
        scope=row.switch.partition(":")[0],
        subject=f"episode:{row.episode_id}",
        facts=facts(row),
        now=now,
    )


def escalate(row: Trip, more: Mapping[str, Any], *, announced: bool, now: datetime) -> None:
    """Have people told step by step until somebody engages the switch or dismisses this."""
    escalation.open_escalation(
        subject=f"{SUBJECT}{row.pk}",
        event="trip.waits",
        severity=SEVERITY,
        scope=row.switch.partition(":")[0],
        facts={**facts(row), **more},
        announced=announced,
        now=now,
    )


def facts(row: Trip) -> dict[str, Any]:
    found: dict[str, Any] = {
        "trip": row.pk,
        "switch": row.switch,
        "source": row.source,
        "fingerprint": row.fingerprint,
        "reason": row.reason,
        "why": row.why,
        "by": row.by,
        "path": path(row),
    }
    if row.episode_id:
        found["episode"] = row.episode_id
    return found


def path(row: Trip) -> str:
    """The page of what was stopped; else the form that stops it, filled in already."""
    scope, _, key = row.switch.partition(":")
    if row.episode_id:
        return f"/switches/{scope}/{key}/"
    return engage_path(row) if row.outcome != Trip.Outcome.REFUSED else "/trips/"


def engage_path(row: Trip) -> str:
    """The engage form with this switch and reason in it; the trips page if it names no switch."""
    scope, _, key = row.switch.partition(":")
    if scope not in SCOPES:
        return "/trips/"
    begin = f"/switches/engage/?{urlencode({'scope': scope, 'key': key})}&reason="
    return f"{begin}{_encoded(row.reason, MAX_LINK_BYTES - len(begin))}"


def _encoded(text: str, most: int) -> str:
    """As much of the text as fits once it is encoded, where a character may be twelve bytes."""
    if len(encoded := quote_plus(text)) <= most:
        return encoded
    kept: list[str] = []
    left = most - len(quote_plus("…"))
    for character in text:
        encoded = quote_plus(character)
        if (left := left - len(encoded)) < 0:
            break
        kept.append(encoded)
    return "".join([*kept, quote_plus("…")])
