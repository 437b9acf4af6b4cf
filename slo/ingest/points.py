"""Recording of pushed points (cumulative counters) and delta batches, or their refusal."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db import transaction

from controlplane.core import canonical
from controlplane.core.actors import Actor
from slo.arithmetic.boots import PRESENCE_BOOT
from slo.models import DeltaBatch, Slo
from slo.models.counters import IMPORTED
from slo.models.objective import MAX_NAME_LENGTH, PROMETHEUS

from . import histograms, recorder
from .push_body import Delta, Point, RefusedEntries
from .samples import CountedEvents, SampleBatch

MAX_AGE = timedelta(hours=24)
MAX_AHEAD = timedelta(minutes=1)
RESERVED_SOURCES = frozenset({IMPORTED, PROMETHEUS})
"""Names of sources that pushed entries can't have; imports and Prometheus use them."""
MAX_BOOTS = 200
"""Most boots of one source of an SLO or histogram in a request."""


class SliTarget(NamedTuple):
    """The id of an SLO's SLI, to which pushed entries are added.

    If `is_polled`, the SLI is read from Prometheus and takes no pushes.
    """

    sli: int
    threshold_ms: float | None
    is_polled: bool


@transaction.atomic(savepoint=False)
def accept_points(points: Sequence[Point], *, now: datetime) -> dict[str, Any]:
    """Record points; return the API's response. Raise :class:`InvalidInput` if all are refused."""
    refused = RefusedEntries()
    known = load_targets({point.slo for point in points if point.slo})
    batch = SampleBatch()
    histogram_points: dict[int, Point] = {}
    boots: dict[tuple[str, str, str, str], set[str]] = {}
    for index, point in enumerate(points):
        if not check_entry(index, point.source, point.at, now, refused):
            continue
        some = boots.setdefault((point.slo, point.metric, point.service, point.source), set())
        if len(some) >= MAX_BOOTS and point.boot not in some:
            refused.add(
                index, "boot", f"A request can contain at most {MAX_BOOTS} boots of one source."
            )
            continue
        some.add(point.boot)
        if point.metric:
            histogram_points[index] = point
        else:
            _add_sample(batch, index, point, known, now, refused)
    whole = histograms.add_samples(batch, histogram_points, refused, now)
    refused.require_some("points", len(points))
    new = recorder.record_samples(batch, now=now)
    counted_slis = whole.union(target.sli for target in known.values())
    accepted = sum(count for sli, count in new.items() if sli in counted_slis)
    valid = len(points) - len(refused.reasons)
    return {"accepted": accepted, "duplicates": valid - accepted, "refused": refused.to_documents()}


def load_targets(names: Iterable[str]) -> dict[str, SliTarget]:
    rows = Slo.objects.present().filter(name__in=list(names), sli__isnull=False)
    columns = ("name", "sli", "kind", "threshold_ms", "source__type")
    known = {}
    for name, sli, kind, threshold_ms, source in rows.values_list(*columns):
        threshold = threshold_ms if kind == Slo.Kind.LATENCY else None
        known[name] = SliTarget(sli, threshold, source == PROMETHEUS)
    return known


def find_services(names: Iterable[str]) -> dict[str, str]:
    rows = Slo.objects.present().filter(name__in=list(names)).order_by("name")
    return dict(rows.values_list("name", "service"))


def check_entry(
    index: int, source: str, at: datetime | None, now: datetime, refused: RefusedEntries
) -> bool:
    """Return True if an entry's source and time are acceptable; else add it to `refused`."""
    if source in RESERVED_SOURCES:
        refused.add(index, "source", f"The name {source} is reserved. Use another one.")
        return False
    if at is None or now - MAX_AGE <= at <= now + MAX_AHEAD:
        return True
    if at > now:
        why = f"Is more than a minute ahead of {canonical.timestamp(now)}, the server's time."
    else:
        why = f"Is more than 24 hours before {canonical.timestamp(now)}; import it as history."
    refused.add(index, "at", why)
    return False


def find_target(
    index: int, name: str, known: Mapping[str, SliTarget], refused: RefusedEntries
) -> SliTarget | None:
    """Return the SLI that counts an entry for the SLO `name`; refuse the entry if there is none."""
    found = known.get(name)
    if found is None:
        refused.add(index, "slo", f"There is no SLO {name[:MAX_NAME_LENGTH]}.")
        return None
    if found.is_polled:
        refused.add(index, "slo", f"The counters of {name} are read from Prometheus.")
        return None
    return found


def _add_sample(
    batch: SampleBatch,
    index: int,
    point: Point,
    known: Mapping[str, SliTarget],
    now: datetime,
    refused: RefusedEntries,
) -> None:
    target = find_target(index, point.slo, known, refused)
    if target is None:
        return
    good, total = point.good, point.total
    if point.buckets is not None:
        if target.threshold_ms is None:
            refused.add(
                index, "buckets", f"{point.slo} has no latency threshold; send good and total."
            )
            return
        counts = dict(point.buckets)
        if target.threshold_ms not in counts:
            why = histograms.explain_missing_edge(target.threshold_ms, counts)
            refused.add(index, "buckets", why)
            return
        good, total = counts[target.threshold_ms], point.buckets[-1][1]
    at = point.at or now
    batch.add(target.sli, point.source, point.boot, at, good, total, point.started_at)


@transaction.atomic(savepoint=False)
def accept_batch(
    *, batch_id: str, deltas: Sequence[Delta], actor: Actor, now: datetime
) -> dict[str, Any]:
    """Record a batch of deltas once; return the response.

    For an id that the actor has sent before, return the earlier response, marked as `duplicate`.
    Raise :class:`InvalidInput` if all deltas are refused; the id can then be used again.
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
    known = load_targets({delta.slo for delta in deltas})
    counted: list[CountedEvents] = []
    for index, delta in enumerate(deltas):
        if check_entry(index, delta.source, delta.at, now, refused):
            target = find_target(index, delta.slo, known, refused)
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
