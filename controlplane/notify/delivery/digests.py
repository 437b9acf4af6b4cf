"""Digests: many reminders for one destination, sent as one message.

A digest is an ordinary message whose payload lists its members. The members are leased, so that
they are not sent individually. When the digest is sent or fails, its members get the same state.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import islice

from django.db.models import Exists, F, Min, OuterRef, Q, QuerySet

from controlplane.core.message_templates import SEVERITIES, events_where
from controlplane.core.outbox import renderer
from controlplane.core.outbox.models import Attempt, OutboxMessage
from controlplane.notify.transports import destinations

EVENT = "outbox.digest"
MAX_ALONE = 10
MAX_TOGETHER = 1000
MEMBER_LEASE = timedelta(days=30)
"""Lease of a member, much longer than a digest takes; then it is sent by itself."""

IN_DIGEST = Q(state="pending", attempts=0, lease_until__isnull=False)
"""Filter for members of a digest: leased without an attempt of their own."""


def create_digest(destination: str, now: datetime) -> OutboxMessage | None:
    """Create and return a digest if more than `MAX_ALONE` reminders wait for a destination.

    Return None for fewer reminders, and for on-call services.
    """
    if destinations.transport_for(destination).tracks_incidents:
        return None
    waiting = _undelivered_reminders().filter(
        pk__in=_list_unblocked(destination), lease_until__isnull=True
    )
    members = list(waiting.select_for_update(skip_locked=True).order_by("id"))
    if len(members) <= MAX_ALONE:
        return None
    first = members[0]
    digest = OutboxMessage.objects.create(
        event=EVENT,
        event_key=f"digest:{first.pk}.{first.fence + 1}",
        destination=destination,
        severity=min((member.severity for member in members), key=SEVERITIES.index),
        payload=_digest_facts(members),
        next_attempt_at=now,
        created_at=now,
    )
    OutboxMessage.objects.filter(pk__in=[member.pk for member in members]).update(
        fence=F("fence") + 1,
        lease_until=now + MEMBER_LEASE,
        last_error=f"sent together with others in message {digest.pk}",
    )
    return digest


def list_members(message: OutboxMessage) -> Sequence[int]:
    return message.payload.get("messages", []) if message.event == EVENT else []


def lock_failed_members(digest: OutboxMessage) -> list[int]:
    failed = OutboxMessage.objects.filter(state="failed", discarded_at__isnull=True)
    return _lock_ids(failed.filter(pk__in=list_members(digest)))


def list_digested(destination: str) -> set[int]:
    """Return the ids of the messages in a destination's unsent digests; lock these digests."""
    digests = OutboxMessage.objects.filter(
        event=EVENT, destination=destination, state__in=["pending", "failed"]
    )
    rows = digests.select_for_update().order_by("id")
    return {member for digest in rows for member in list_members(digest)}


def end_members(digest: OutboxMessage, state: str, reason: str, now: datetime) -> None:
    """Set the digest's members to its final state, except those that were retried individually."""
    if digest.event != EVENT or state == OutboxMessage.State.PENDING:
        return
    held = Q(state="pending", lease_until__isnull=False) | Q(state="failed")
    note = f"sent together with others in message {digest.pk}"
    rows = OutboxMessage.objects.filter(held, pk__in=list_members(digest))
    OutboxMessage.objects.filter(pk__in=_lock_ids(rows)).update(
        state=state,
        last_error="" if state == OutboxMessage.State.SENT else f"{note}: {reason}",
        lease_until=None,
        finished_at=now,
    )


def _lock_ids(rows: QuerySet[OutboxMessage]) -> list[int]:
    """Lock messages in id order to avoid deadlocks; return their ids."""
    return list(rows.select_for_update().order_by("id").values_list("pk", flat=True))


def _undelivered_reminders() -> QuerySet[OutboxMessage]:
    named = Q(event__in=events_where(lambda template: template.is_digestible))
    tried = Attempt.objects.filter(message=OuterRef("pk"))
    return OutboxMessage.objects.filter(named, ~Exists(tried), state="pending", attempts=0)


def _list_unblocked(destination: str) -> list[int]:
    """Return the ids of the oldest reminders that needn't wait for another message.

    A reminder waits while an earlier message about its subject is pending. This takes two queries,
    because comparing each message with all earlier ones is quadratic.
    """
    possible = _undelivered_reminders().filter(destination=destination, lease_until__isnull=True)
    others = OutboxMessage.objects.filter(~IN_DIGEST, state="pending", destination=destination)
    blocking = others.exclude(Q(subject="") | Q(pk__in=possible.values("pk"))).order_by()
    first_of = dict(blocking.values_list("subject").annotate(Min("id")))
    rows = possible.order_by("id").values_list("pk", "subject").iterator()
    unblocked = (pk for pk, subject in rows if first_of.get(subject, pk) >= pk)
    return list(islice(unblocked, MAX_TOGETHER))


def _digest_facts(members: Sequence[OutboxMessage]) -> dict[str, object]:
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
