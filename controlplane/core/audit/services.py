"""Writing the audit trail, reading it back, and proving that it is whole."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import connection, transaction
from django.db.models import QuerySet

from controlplane.core import authority, canonical, deadline
from controlplane.core.actors import Actor
from controlplane.core.audit import chain, search
from controlplane.core.audit.models import AuditEntry, AuditRound
from controlplane.core.outbox import services as outbox
from controlplane.core.outbox.models import OutboxMessage

READ_AT_ONCE = 500
WRITTEN_AT_ONCE = 500
CHAIN_LOCK = 0x5317C4  # an arbitrary number, unique among our advisory locks
# From each action to the next, as PostgreSQL does not skip over like entries of an index by itself.
_ACTIONS = f"""
WITH RECURSIVE found AS (
    (SELECT action FROM {AuditEntry._meta.db_table} ORDER BY action LIMIT 1)
    UNION ALL
    SELECT (SELECT action FROM {AuditEntry._meta.db_table} AS following
             WHERE following.action > found.action ORDER BY action LIMIT 1)
      FROM found WHERE found.action IS NOT NULL
) SELECT action FROM found WHERE action IS NOT NULL
"""  # noqa: S608 - the table's own name


def record(
    *,
    actor: Actor,
    action: str,
    target: str,
    now: datetime,
    reason: str = "",
    before: Any = None,
    after: Any = None,
) -> AuditEntry:
    """Append one row in the caller's transaction. Call it last: it locks the chain until commit.

    Raises :class:`Unavailable` if the request's deadline has passed, and :class:`Forbidden` if the
    actor has lost their permissions. Without the lock, concurrent writers would follow the same
    row; it also makes the ids gapless.
    """
    said = {"action": action, "target": target, "reason": reason, "before": before, "after": after}
    (entry,) = record_many([{**said, "actor": actor, "now": now}])
    return entry


def record_many(rows: Sequence[Mapping[str, Any]]) -> list[AuditEntry]:
    """Append one row for each, in their order, as :func:`record` does with these arguments."""
    if not rows:
        return []
    _lock_chain()
    deadline.check()
    authority.require_still(row["actor"] for row in rows)
    head = AuditEntry.objects.order_by("-id").values("id", "hash").first()
    last, previous_hash = (head["id"], head["hash"]) if head else (0, chain.GENESIS)
    entries = []
    for place, row in enumerate(rows, start=1):
        entry = _entry(id=last + place, previous_hash=previous_hash, **row)
        previous_hash = entry.hash
        entries.append(entry)
    return AuditEntry.objects.bulk_create(entries, batch_size=WRITTEN_AT_ONCE)


def _entry(
    *,
    id: int,
    previous_hash: str,
    actor: Actor,
    action: str,
    target: str,
    now: datetime,
    reason: str = "",
    before: Any = None,
    after: Any = None,
) -> AuditEntry:
    entry = AuditEntry(
        id=id,
        at=now,
        actor_type=actor.type,
        actor_name=actor.name,
        action=action,
        target=target,
        reason=reason,
        before=canonical.dumps(before),
        after=canonical.dumps(after),
        request_id=actor.request_id,
        ip=actor.ip,
        previous_hash=previous_hash,
    )
    entry.hash = chain.digest(as_row(entry))
    return entry


def as_row(entry: AuditEntry) -> dict[str, Any]:
    """Return the row as exported and hashed: plain values, `at` as RFC 3339."""
    row = {field: getattr(entry, field) for field in (*chain.FIELDS, "hash")}
    return {**row, "at": canonical.timestamp(entry.at)}


def rows() -> Iterator[dict[str, Any]]:
    """Yield the whole trail in order, in constant memory."""
    yield from rows_of(AuditEntry.objects.all())


def rows_of(entries: QuerySet[AuditEntry], text: str = "") -> Iterator[dict[str, Any]]:
    """Yield the chosen rows that contain `text`, in order, up to the newest at the start.

    They are read page by page: a slow reader holds no transaction or statement open, and a
    statement reads at most a page or the index's matches.
    """
    newest = AuditEntry.objects.order_by("-id").values_list("id", flat=True).first() or 0
    seen = 0
    while seen < newest:
        rest = entries.filter(id__gt=seen, id__lte=newest).order_by("id")
        end = newest
        if not text:
            page = list(rest[:READ_AT_ONCE])
        elif search.is_short(text):
            end = min(seen + search.MAX_SCANNED, newest)
            page = list(rest.filter(search.containing(text), id__lte=end)[:READ_AT_ONCE])
        else:
            found = search.by_segment(
                rest, text, ascending=True, position=seen + 1, limit=READ_AT_ONCE
            )
            page = list(AuditEntry.objects.raw(*found))
        yield from map(as_row, page)
        seen = page[-1].pk if len(page) == READ_AT_ONCE else end


def actions() -> list[str]:
    """Return the distinct actions in the trail.

    Needs one index lookup per action, however many rows have it.
    """
    with connection.cursor() as cursor:
        cursor.execute(_ACTIONS)
        return [action for (action,) in cursor.fetchall()]


def verify(anchors: Mapping[int, str] | None = None) -> chain.Verdict:
    """Check the stored trail, also against heads recorded elsewhere in this database.

    `anchors` (id → hash) are published ones, checked if given.
    """
    return chain.verify(rows(), known_heads() | dict(anchors or {}))


def known_heads() -> dict[int, str]:
    """Return id → hash of the head of the last complete round and of announced anchors.

    A truncated or rehashed trail contradicts them, unless they were rewritten as well.
    """
    announced = OutboxMessage.objects.filter(event="audit.anchored").order_by("-id")
    payloads = announced.values_list("payload__id", "payload__hash")[:READ_AT_ONCE]
    heads = {int(id): str(digest) for id, digest in payloads if id and digest}
    whole = AuditRound.objects.exclude(whole_hash="").values_list("whole_id", "whole_hash").first()
    return heads | ({whole[0]: whole[1]} if whole and whole[0] else {})


@transaction.atomic
def anchor(*, actor: Actor, now: datetime) -> AuditEntry:
    """Record the head of the chain in an audit row, and announce it to all destinations."""
    entry = record(actor=actor, action="audit.anchored", target="audit", now=now)
    outbox.announce(
        event="audit.anchored",
        event_key=f"audit:{entry.id}",
        facts={
            "id": entry.id,
            "hash": entry.hash,
            "at": canonical.timestamp(now),
            "path": "/audit/",
        },
        now=now,
    )
    return entry


def _lock_chain() -> None:
    if not connection.in_atomic_block:
        raise transaction.TransactionManagementError("audit.record needs a transaction")
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [CHAIN_LOCK])
