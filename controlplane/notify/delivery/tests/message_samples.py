"""Messages in all states, for tests of the pages about them."""

from datetime import datetime, timedelta
from itertools import count
from typing import Any

from controlplane.core.clock import db_now
from controlplane.core.outbox.models import Attempt, OutboxMessage
from controlplane.notify.models.targets import Route, Target

_keys = count(1)


def create_message(
    state: str = "sent", destination: str = "slack", at: datetime | None = None, **more: Any
) -> OutboxMessage:
    """Write a message with an attempt that fits its state."""
    at = at or db_now()
    error = more.pop("error", "HTTP 500 from Slack" if state == "failed" else "")
    outcomes = more.pop("outcomes", {"sent": ["sent"], "failed": ["unknown", "refused"]})
    message = OutboxMessage.objects.create(
        event=more.pop("event", "switch.engaged"),
        event_key=f"test:{next(_keys)}",
        destination=destination,
        payload=more.pop("facts", {"switch": "segment:finance", "reason": "결제 이중 청구"}),
        state=state,
        attempts=8 if state == "failed" else 1,
        last_error=error,
        created_at=at,
        next_attempt_at=at,
        finished_at=None if state == "pending" else at + timedelta(seconds=2),
        **more,
    )
    names = outcomes if isinstance(outcomes, list) else outcomes.get(state, [])
    for number, outcome in enumerate(names, 1):
        Attempt.objects.create(
            message=message,
            number=number,
            started_at=at,
            finished_at=None if outcome == "started" else at + timedelta(seconds=1.5),
            outcome=outcome,
            error="" if outcome == "sent" else error,
        )
    return message


def hook(name: str = "pager", **more: Any) -> Target:
    fields = {
        "kind": "channel",
        "address": "webhook",
        "webhook_url": "https://hooks.example.org/T0P-S3CRET-PATH",
        "webhook_secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "created_at": db_now(),
    }
    return Target.objects.create(name=name, **{**fields, **more})


def somebody(name: str, **more: Any) -> Target:
    return Target.objects.create(name=name, kind="person", created_at=db_now(), **more)


def route_to_hook() -> Route:
    """Route every event to a webhook, so that somebody is notified."""
    return Route.objects.create(target=hook(), created_at=db_now())
