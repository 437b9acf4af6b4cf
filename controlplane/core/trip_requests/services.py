"""Services that create and decide trip requests."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import structlog
from django.db import InterfaceError, OperationalError, transaction
from django.db.models import QuerySet

from controlplane.core.errors import DomainError
from controlplane.core.trip_requests.models import TripRequest

MAX_AT_ONCE = 50
UNDECIDED = "An internal error prevented a decision; see the log."

log = structlog.get_logger(__name__)

Decide = Callable[[TripRequest, datetime], tuple[bool, str]]
"""Function that decides a request: True if it tripped the switch, and the reason."""


def request_trip(
    *,
    key: str,
    switch: str,
    source: str,
    fingerprint: str,
    reason: str,
    evidence: Mapping[str, Any],
    expires_in: str,
    now: datetime,
) -> bool:
    """Request a trip of `switch`, in the caller's transaction.

    The switches app decides the request within seconds, by its policies for automatic trips.
    Returns False if there has been a request with this `key`.
    """
    return _create(
        key,
        switch=switch,
        source=source,
        fingerprint=fingerprint,
        reason=reason,
        evidence=dict(evidence),
        expires_in=expires_in,
        requested_at=now,
    )


def report_cause_over(
    *, key: str, switch: str, source: str, fingerprint: str, now: datetime
) -> bool:
    """Record that the cause of a trip is over, so that a new cause may request a trip.

    `fingerprint` identifies the cause. This releases no switch. Runs in the caller's transaction;
    returns False if `key` was used before.
    """
    fields = {"switch": switch, "source": source, "fingerprint": fingerprint}
    return _create(key, **fields, is_over=True, requested_at=now)


def _create(key: str, **fields: Any) -> bool:
    if TripRequest.objects.filter(key=key).exists():
        return False
    TripRequest.objects.bulk_create([TripRequest(key=key, **fields)], ignore_conflicts=True)
    return True


def decide_open(decide: Decide, now: datetime) -> int:
    """Decide each open request, oldest first, in its own transaction; return their number.

    If deciding a request fails, the other requests are still decided. Requests with the same
    fingerprint are decided in order.
    """
    oldest_first = select_undecided().order_by("requested_at", "pk")
    ids = list(oldest_first.values_list("pk", flat=True)[:MAX_AT_ONCE])
    return sum(_decide_one(pk, decide, now) for pk in ids)


def select_undecided() -> QuerySet[TripRequest]:
    return TripRequest.objects.filter(decided_at__isnull=True)


@transaction.atomic
def _decide_one(pk: int, decide: Decide, now: datetime) -> bool:
    rows = TripRequest.objects.select_for_update(skip_locked=True)
    request = rows.filter(pk=pk, decided_at__isnull=True).first()
    if request is None:
        return False
    # Another worker may be deciding an earlier request of this fingerprint.
    same = select_undecided().filter(source=request.source, fingerprint=request.fingerprint)
    if same.filter(pk__lt=request.pk).exists():
        return False
    try:
        with transaction.atomic():
            request.tripped, request.why = decide(request, now)
    except (OperationalError, InterfaceError) as error:
        # For example a deadlock; the next attempt may succeed.
        log.warning("trip_request.postponed", key=request.key, error=str(error).strip())
        return False
    except DomainError as error:
        request.tripped, request.why = False, error.detail
        log.warning("trip_request.refused", key=request.key, why=error.detail)
    except Exception:
        request.tripped, request.why = False, UNDECIDED
        log.exception("trip_request.failed", key=request.key)
    request.decided_at = now
    request.save(update_fields=["tripped", "why", "decided_at"])
    return True
