"""What client libraries report: the data plane writes it down, and this adds it to the minutes."""

from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models import QuerySet

from slo.arithmetic.boots import PRESENCE_BOOT
from slo.models import Delayed, Reported

from . import points, recorder
from .recorder import Counted, Sample

BATCH_SIZE = 5000
SOURCE = "(reports)"
PRESENT_FOR = timedelta(minutes=2)
# Two that fold at once take different rows.
_TAKE = """
    DELETE FROM slo_reported WHERE id = ANY(ARRAY(
        SELECT id FROM slo_reported ORDER BY id LIMIT %s FOR UPDATE SKIP LOCKED
    )) RETURNING slo, instance, began_at, ended_at, good, total
"""
# Instances say all that they ever counted, also while nothing is to be counted. The last of
# `tokens` reported last; one that is limited speaks only for SLOs of its services.
_PRESENT = """
    SELECT counted.slo, max(reported_at)
    FROM core_instance
    CROSS JOIN jsonb_object_keys(coalesce(reported -> 'sli', '{}')) AS counted (slo)
    LEFT JOIN core_token t ON t.id = (reported #>> '{tokens,-1,0}')::bigint AND t.services <> '{}'
    LEFT JOIN slo_slo s ON s.name = counted.slo AND s.removed_at IS NULL
    WHERE reported_at > %s AND (t.id IS NULL OR s.service = ANY(t.services))
    GROUP BY counted.slo
"""


def pending_rows() -> list[QuerySet[Any]]:
    """Return the reported increments and points that are not added yet."""
    return [Reported.objects.all(), Delayed.objects.all()]


def add_reported(now: datetime, *, most: int) -> int:
    """Add up to about `most` reported growths to the minutes; returns how many. What is of no SLO
    here, or of one that is read from elsewhere, is left out."""
    done = 0
    while done < most:
        taken = _add_some(now)
        done += taken
        if taken < BATCH_SIZE:
            break
    return done


def record_presence(now: datetime) -> int:
    """Cover the minutes in which some instance that counts an SLO reported, though perhaps nothing
    came; returns for how many SLOs."""
    with connection.cursor() as cursor:
        cursor.execute(_PRESENT, [now - PRESENT_FOR])
        seen = dict(cursor.fetchall())
    known = points.load_targets(seen)
    samples = [
        Sample(target.sli, SOURCE, PRESENCE_BOOT, min(seen[name], now), 0.0, 0.0)
        for name, target in known.items()
        if not target.is_read
    ]
    recorder.record_samples(samples, now=now, is_noted=True)
    return len(samples)


@transaction.atomic
def _add_some(now: datetime) -> int:
    with connection.cursor() as cursor:
        cursor.execute(_TAKE, [BATCH_SIZE])
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    if not rows:
        return 0
    known = points.load_targets({row[0] for row in rows})
    counted = [
        Counted(target.sli, *told)
        for slo, *told in rows
        if (target := known.get(slo)) and not target.is_read
    ]
    recorder.record_samples((), counted=counted, now=now, is_noted=True)
    return len(rows)
