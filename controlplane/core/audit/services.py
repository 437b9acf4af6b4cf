"""Services of the audit trail: append, read, verify and export entries."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import structlog
from django.db import connection, transaction
from django.db.models import QuerySet

from controlplane.core import authority, canonical, deadline
from controlplane.core.actors import Actor
from controlplane.core.audit import chain, search
from controlplane.core.audit.models import AuditEntry, AuditRound
from controlplane.core.outbox import services as outbox
from controlplane.core.outbox.models import OutboxMessage
from controlplane.core.sql import execute, fetch_all

TICK = "audit.verify"
MAX_VERIFIED_AT_ONCE = 10_000
READ_AT_ONCE = 500
WRITTEN_AT_ONCE = 500
COLUMNS = (*chain.FIELDS, "hash")
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""First characters of spreadsheet formulas, including fullwidth forms."""
CHAIN_LOCK = 0x5317C4  # an arbitrary number, unique among our advisory locks
# A loose index scan, one lookup per distinct action: PostgreSQL has no such plan for DISTINCT.
_ACTIONS = f"""
WITH RECURSIVE found AS (
    (SELECT action FROM {AuditEntry._meta.db_table} ORDER BY action LIMIT 1)
    UNION ALL
    SELECT (SELECT action FROM {AuditEntry._meta.db_table} AS following
             WHERE following.action > found.action ORDER BY action LIMIT 1)
      FROM found WHERE found.action IS NOT NULL
) SELECT action FROM found WHERE action IS NOT NULL
"""  # noqa: S608 - the table's own name

log = structlog.get_logger(__name__)


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
    """Append an audit entry in the caller's transaction, and lock the chain until that ends.

    Call it last in the transaction. The lock gives each entry a unique predecessor and gapless ids.
    Raises :class:`Unavailable` if the request's deadline has passed, and :class:`Forbidden` if the
    actor has lost their permissions.
    """
    row = {"actor": actor, "action": action, "target": target, "now": now, "reason": reason}
    (entry,) = record_many([{**row, "before": before, "after": after}])
    return entry


def record_many(rows: Sequence[Mapping[str, Any]]) -> list[AuditEntry]:
    """Append several audit entries in order; each row has the arguments of :func:`record`."""
    if not rows:
        return []
    if not connection.in_atomic_block:
        raise transaction.TransactionManagementError("audit.record needs a transaction")
    execute("SELECT pg_advisory_xact_lock(%s)", [CHAIN_LOCK])
    deadline.check()
    authority.require_still(row["actor"] for row in rows)
    head = AuditEntry.objects.order_by("-id").values("id", "hash").first()
    last, previous_hash = (head["id"], head["hash"]) if head else (0, chain.GENESIS)
    entries = []
    for place, row in enumerate(rows, start=1):
        entry = _build_entry(last + place, previous_hash, row)
        previous_hash = entry.hash
        entries.append(entry)
    return AuditEntry.objects.bulk_create(entries, batch_size=WRITTEN_AT_ONCE)


def _build_entry(id: int, previous_hash: str, row: Mapping[str, Any]) -> AuditEntry:
    actor: Actor = row["actor"]
    entry = AuditEntry(
        id=id,
        at=row["now"],
        actor_type=actor.type,
        actor_name=actor.name,
        action=row["action"],
        target=row["target"],
        reason=row.get("reason", ""),
        before=canonical.dumps(row.get("before")),
        after=canonical.dumps(row.get("after")),
        request_id=actor.request_id,
        ip=actor.ip,
        previous_hash=previous_hash,
    )
    entry.hash = chain.hash_row(as_row(entry))
    return entry


def as_row(entry: AuditEntry) -> dict[str, Any]:
    """Return an audit entry as a dict, as exported and hashed: plain values, `at` as RFC 3339."""
    row = {field: getattr(entry, field) for field in COLUMNS}
    return {**row, "at": canonical.timestamp(entry.at)}


def read_trail() -> Iterator[dict[str, Any]]:
    """Yield all audit entries as dicts, oldest first, in constant memory."""
    yield from read_entries(AuditEntry.objects.all())


def read_entries(entries: QuerySet[AuditEntry], text: str = "") -> Iterator[dict[str, Any]]:
    """Yield the entries that contain `text`, by id, except those added after the first read.

    The entries are read in pages, so that a slow consumer holds no transaction or statement open.
    """
    newest = AuditEntry.objects.order_by("-id").values_list("id", flat=True).first() or 0
    last_id = 0
    while last_id < newest:
        rest = entries.filter(id__gt=last_id, id__lte=newest).order_by("id")
        end = newest
        if not text:
            page = list(rest[:READ_AT_ONCE])
        elif search.is_short(text):
            end = min(last_id + search.MAX_SCANNED, newest)
            page = list(rest.filter(search.match_text(text), id__lte=end)[:READ_AT_ONCE])
        else:
            query = search.build_segment_query(
                rest, text, ascending=True, position=last_id + 1, limit=READ_AT_ONCE
            )
            page = list(AuditEntry.objects.raw(*query))
        yield from map(as_row, page)
        last_id = page[-1].pk if len(page) == READ_AT_ONCE else end


def find_beginning() -> datetime | None:
    """Return the time of the trail's first entry, None for an empty trail."""
    return AuditEntry.objects.order_by("id").values_list("at", flat=True).first()


def list_actions() -> list[str]:
    return [action for (action,) in fetch_all(_ACTIONS)]


def verify(anchors: Mapping[int, str] | None = None) -> chain.ChainVerdict:
    """Verify the trail against itself and against chain heads recorded elsewhere.

    The recorded heads are those of :func:`find_recorded_heads` and the published `anchors`
    (id → hash).
    """
    return chain.verify(read_trail(), find_recorded_heads() | dict(anchors or {}))


def find_recorded_heads() -> dict[int, str]:
    """Return earlier heads of the chain (id → hash): announced anchors and the last verified head.

    The latter is the last row when the trail was last verified as a whole. A truncated or rehashed
    trail contradicts these heads, unless they were rewritten too.
    """
    announced = OutboxMessage.objects.filter(event="audit.anchored").order_by("-id")
    payloads = announced.values_list("payload__id", "payload__hash")[:READ_AT_ONCE]
    heads = {int(id): str(digest) for id, digest in payloads if id and digest}
    whole = AuditRound.objects.exclude(whole_hash="").values_list("whole_id", "whole_hash").first()
    return heads | ({whole[0]: whole[1]} if whole and whole[0] else {})


@transaction.atomic
def record_anchor(*, actor: Actor, now: datetime) -> AuditEntry:
    """Record the head of the chain in an audit entry, and announce it to all destinations."""
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


@transaction.atomic
def verify_next_rows(now: datetime, *, most: int = MAX_VERIFIED_AT_ONCE) -> int:
    """Verify up to `most` rows of the trail after the last verified one; return how many are valid.

    After an invalid row the next call starts at that row again. Each round through the trail also
    compares it with the head of the last complete round, which reveals a truncated or rehashed
    trail.
    """
    AuditRound.objects.get_or_create(pk=1, defaults={"begun_at": now})
    state = AuditRound.objects.select_for_update(skip_locked=True).first()
    if state is None:
        return 0  # Another process is verifying.
    last = state.reached_id + most
    newest = AuditEntry.objects.order_by("-id").values_list("id", flat=True).first() or 0
    at_end = newest <= last
    anchors = {}
    if state.reached_id < state.whole_id and (state.whole_id <= last or at_end):
        anchors[state.whole_id] = state.whole_hash
    rows = read_entries(AuditEntry.objects.filter(id__gt=state.reached_id, id__lte=last))
    verdict = chain.verify(rows, anchors, after=(state.reached_id, state.reached_hash))
    if verdict.intact:
        state.problem, state.broken_at = "", None
        if at_end:
            state.whole_id, state.whole_hash = verdict.head_id, verdict.head_hash
            state.whole_at = now
            state.reached_id, state.reached_hash = 0, chain.GENESIS
        else:
            state.reached_id, state.reached_hash = verdict.head_id, verdict.head_hash
    elif not state.problem:
        state.problem, state.broken_at = f"row {verdict.bad_id}: {verdict.problem}", now
        log.error("audit.broken", row=verdict.bad_id, problem=verdict.problem)
    state.save()
    return verdict.rows


def build_csv_rows(rows: Iterable[Mapping[str, Any]]) -> Iterator[list[str]]:
    """Yield the rows of a CSV export, header first; texts like a formula get a leading quote."""
    yield list(COLUMNS)
    for row in rows:
        yield [_escape_formula(row[column]) for column in COLUMNS]


def _escape_formula(value: Any) -> str:
    text = str(value)
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text
