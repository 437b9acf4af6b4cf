"""Digests: many reminders pending for one destination are sent as one message.

A digest is an ordinary message with its own attempts and state; its payload lists its members. The
members are leased to it, so they aren't sent by themselves, and they end in its state.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import islice

from django.db.models import Exists, F, Min, OuterRef, Q, QuerySet

from controlplane.core.message_templates import events_where
from controlplane.core.outbox import renderer
from controlplane.core.outbox.models import Attempt, OutboxMessage
from controlplane.notify.transports import registry

EVENT = "outbox.digest"
MAX_ALONE = 10
MAX_TOGETHER = 1000
MEMBER_LEASE = timedelta(days=30)
"""Lease of a member, far longer than a digest can take; afterwards it is sent by itself."""

TOLD_BY_ONE = Q(state="pending", attempts=0, lease_until__isnull=False)
"""Members of a digest: leased without an attempt of their own."""


def gather(destination: str, now: datetime) -> OutboxMessage | None:
    """Create a digest if more than `MAX_ALONE` unattempted reminders wait; return it, or None.

    Runs in the transaction of a claim, whose lock on the destination serializes it.
    """
    if registry.tracks_incidents(destination):
        return None
    waiting = _fresh().filter(pk__in=_unblocked(destination), lease_until__isnull=True)
    members = list(waiting.select_for_update(skip_locked=True).order_by("id"))
    if len(members) <= MAX_ALONE:
        return None
    first = members[0]
    digest = OutboxMessage.objects.create(
        event=EVENT,
        event_key=f"digest:{first.pk}.{first.fence + 1}",
        destination=destination,
        subject="",
        severity=_worst(members),
        payload=_facts(members),
        next_attempt_at=now,
        created_at=now,
    )
    OutboxMessage.objects.filter(pk__in=[member.pk for member in members]).update(
        fence=F("fence") + 1,
        lease_until=now + MEMBER_LEASE,
        last_error=f"told together with others, in message {digest.pk}",
    )
    return digest


def members(message: OutboxMessage) -> Sequence[int]:
    """Return the ids of a digest's members; empty for any other message."""
    return message.payload.get("messages", []) if message.event == EVENT else []


def failed_members(digest: OutboxMessage) -> list[int]:
    """Return the ids of a digest's members that failed with it, locked."""
    rows = OutboxMessage.objects.filter(
        pk__in=members(digest), state="failed", discarded_at__isnull=True
    )
    return _locked(rows)


def to_be_told(destination: str) -> set[int]:
    """Return the members of all pending or failed digests of a destination; locks the digests."""
    digests = OutboxMessage.objects.filter(
        event=EVENT, destination=destination, state__in=["pending", "failed"]
    )
    rows = digests.select_for_update().order_by("id")
    return {member for digest in rows for member in members(digest)}


def end_members(digest: OutboxMessage, state: str, reason: str, now: datetime) -> None:
    """Set the members to the state of their digest, except those retried individually."""
    if digest.event != EVENT or state == OutboxMessage.State.PENDING:
        return
    held = Q(state="pending", lease_until__isnull=False) | Q(state="failed")
    note = f"told together with others, in message {digest.pk}"
    rows = OutboxMessage.objects.filter(held, pk__in=members(digest))
    OutboxMessage.objects.filter(pk__in=_locked(rows)).update(
        state=state,
        last_error="" if state == OutboxMessage.State.SENT else f"{note}: {reason}",
        lease_until=None,
        finished_at=now,
    )


def _locked(rows: QuerySet[OutboxMessage]) -> list[int]:
    """Return the ids of messages, locked in id order to avoid deadlocks."""
    return list(rows.select_for_update().order_by("id").values_list("pk", flat=True))


def _fresh() -> QuerySet[OutboxMessage]:
    named = Q(event__in=events_where(lambda template: template.is_digestible))
    tried = Attempt.objects.filter(message=OuterRef("pk"))
    return OutboxMessage.objects.filter(named, ~Exists(tried), state="pending", attempts=0)


def _unblocked(destination: str) -> list[int]:
    """Return the first ids of possible members that no earlier message of their subject blocks.

    Two queries, because comparing each message with the earlier ones takes quadratic time.
    """
    possible = _fresh().filter(destination=destination, lease_until__isnull=True)
    others = OutboxMessage.objects.filter(~TOLD_BY_ONE, state="pending", destination=destination)
    blocking = others.exclude(Q(subject="") | Q(pk__in=possible.values("pk"))).order_by()
    first_of = dict(blocking.values_list("subject").annotate(Min("id")))
    rows = possible.order_by("id").values_list("pk", "subject").iterator()
    unblocked = (pk for pk, subject in rows if first_of.get(subject, pk) >= pk)
    return list(islice(unblocked, MAX_TOGETHER))


def _worst(members: Sequence[OutboxMessage]) -> str:
    severities = {member.severity for member in members}
    return next((one for one in ("critical", "warning") if one in severities), "info")


def _facts(members: Sequence[OutboxMessage]) -> dict[str, object]:
    notices = [renderer.render(one.event, one.payload) for one in members[: renderer.MAX_LISTED]]
    listed = {
        f"told_{number}": f"{notice.icon} {notice.title}" for number, notice in enumerate(notices)
    }
    more = len(members) - len(notices)
    return {
        "count": len(members),
        **listed,
        "more": f"{more} more" if more else None,
        "path": "/attention/",
        "messages": [member.pk for member in members],
    }
