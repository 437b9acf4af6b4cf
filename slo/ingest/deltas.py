"""Batches of deltas, each accepted once."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import transaction

from controlplane.core.actors import Actor
from slo.arithmetic.boots import PRESENCE_BOOT
from slo.models import DeltaBatch

from . import points, recorder
from .points import RefusedEntries
from .push_body import Delta
from .samples import CountedEvents, SampleBatch


@transaction.atomic(savepoint=False)
def accept_batch(
    *, batch_id: str, deltas: Sequence[Delta], actor: Actor, now: datetime
) -> dict[str, Any]:
    """Accept a batch of deltas once.

    If this sender sent it before, return the same answer as a `duplicate`. A concurrent copy
    waits. Raise :class:`InvalidInput` if nothing of it was accepted; then it may be sent again.
    """
    batch = DeltaBatch(sender=actor.identity, batch_id=batch_id, received_at=now)
    DeltaBatch.objects.bulk_create([batch], ignore_conflicts=True)
    batch = DeltaBatch.objects.get(sender=actor.identity, batch_id=batch_id)
    if batch.answer:
        return {**batch.answer, "duplicate": True}
    batch.answer = _accept_deltas(deltas, now)
    batch.save(update_fields=["answer"])
    return {**batch.answer, "duplicate": False}


def _accept_deltas(deltas: Sequence[Delta], now: datetime) -> dict[str, Any]:
    refused = RefusedEntries()
    known = points.load_targets({delta.slo for delta in deltas})
    counted: list[CountedEvents] = []
    for index, delta in enumerate(deltas):
        if points.check_entry(index, delta.source, delta.at, now, refused):
            target = points.find_target(index, delta.slo, known, refused)
            if target is not None:
                at = delta.at or now
                counted.append(
                    CountedEvents(target.sli, delta.source, at, at, delta.good, delta.total)
                )
    refused.require_some("deltas", len(deltas))
    # Empty samples at their times prove in which minutes the source was there to count.
    presence = SampleBatch()
    for one in counted:
        presence.add(one.sli, one.source, PRESENCE_BOOT, one.ended_at, 0.0, 0.0)
    recorder.record_samples(presence, counted=counted, now=now)
    return {"accepted": len(counted), "duplicates": 0, "refused": refused.to_documents()}
