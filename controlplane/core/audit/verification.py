"""The trail verified round after round, a piece at a time, so that a broken one is noticed."""

from datetime import datetime

import structlog
from django.db import transaction

from . import chain, services
from .models import AuditEntry, AuditRound

TICK = "audit.verify"
MAX_AT_ONCE = 10_000

log = structlog.get_logger(__name__)


@transaction.atomic
def turn(now: datetime, *, most: int = MAX_AT_ONCE) -> int:
    """Verify the next rows; returns how many held. A broken place is looked at again and again.

    The head of the last whole round has to be there still: a trail that was cut at its end, or
    rehashed, is a whole chain otherwise.
    """
    AuditRound.objects.get_or_create(pk=1, defaults={"begun_at": now})
    here = AuditRound.objects.select_for_update(skip_locked=True).first()
    if here is None:
        return 0  # Another process is at it.
    verdict, at_end = _next(here, most)
    if verdict.intact:
        _go_on(here, verdict, at_end, now)
    elif not here.problem:
        here.problem, here.broken_at = f"row {verdict.bad_id}: {verdict.problem}", now
        log.error("audit.broken", row=verdict.bad_id, problem=verdict.problem)
    here.save()
    return verdict.rows


def _next(here: AuditRound, most: int) -> tuple[chain.Verdict, bool]:
    """Return the result for the next rows, and whether the trail ends with them."""
    last = here.reached_id + most
    newest = AuditEntry.objects.order_by("-id").values_list("id", flat=True).first() or 0
    at_end = newest <= last
    anchors = {}
    if here.reached_id < here.whole_id and (here.whole_id <= last or at_end):
        anchors[here.whole_id] = here.whole_hash
    rows = services.rows_of(AuditEntry.objects.filter(id__gt=here.reached_id, id__lte=last))
    return chain.verify(rows, anchors, after=(here.reached_id, here.reached_hash)), at_end


def _go_on(here: AuditRound, verdict: chain.Verdict, at_end: bool, now: datetime) -> None:
    here.reached_id, here.reached_hash = verdict.head_id, verdict.head_hash
    here.problem, here.broken_at = "", None
    if at_end:
        here.whole_id, here.whole_hash = verdict.head_id, verdict.head_hash
        here.whole_at = now
        here.reached_id, here.reached_hash = 0, chain.GENESIS
