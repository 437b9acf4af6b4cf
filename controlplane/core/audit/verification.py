"""Continuous verification of the audit trail, in rounds of limited steps."""

from datetime import datetime

import structlog
from django.db import transaction

from . import chain, services
from .models import AuditEntry, AuditRound

TICK = "audit.verify"
MAX_AT_ONCE = 10_000

log = structlog.get_logger(__name__)


@transaction.atomic
def verify_next_rows(now: datetime, *, most: int = MAX_AT_ONCE) -> int:
    """Verify up to `most` rows after the last verified one; return the number of valid rows.

    After an invalid row the next call starts at that row again. Each round also compares the trail
    with the head of the last complete round, which reveals a truncated or rehashed trail.
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
    rows = services.read_entries(AuditEntry.objects.filter(id__gt=state.reached_id, id__lte=last))
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
