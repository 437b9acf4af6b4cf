"""Events reported by client libraries, and their addition to the minute counters by a task."""

from collections.abc import Mapping, Set
from datetime import datetime, timedelta

import structlog
from django.db import transaction

from controlplane.accounts.models.tokens import Token
from controlplane.core import authority
from controlplane.core.authority import Teams
from controlplane.core.instances.exports import load_counted_slos
from controlplane.core.sql import fetch_all
from slo.arithmetic.boots import PRESENCE_BOOT

from . import points, recorder
from .samples import CountedEvents, SampleBatch

log = structlog.get_logger(__name__)

BATCH_SIZE = 5000
SOURCE = "(reports)"
PRESENT_FOR = timedelta(minutes=2)
# Concurrent ticks take different rows.
_DELETE_BATCH = """
    DELETE FROM slo_reported WHERE id = ANY(ARRAY(
        SELECT id FROM slo_reported ORDER BY id LIMIT %s FOR UPDATE SKIP LOCKED
    )) RETURNING slo, instance, began_at, ended_at, good, total
"""


def add_reported(now: datetime, *, most: int) -> int:
    """Add about `most` reported increments to the minute counters; return how many were taken.

    Increments of unknown SLOs, and of SLOs that are polled from Prometheus, are dropped.
    """
    done = 0
    while done < most:
        added = _add_batch(now)
        done += added
        if added < BATCH_SIZE:
            break
    return done


def record_presence(now: datetime) -> int:
    """Mark minutes as covered for the SLOs that instances report on, even without events.

    Return the number of such SLOs. A report by a token limited to services covers only SLOs of
    those services.
    """
    reports = load_counted_slos(now - PRESENT_FOR)
    known = points.load_targets({report.slo for report in reports})
    services = points.find_services(known)
    limited_tokens = Token.objects.filter(pk__in={report.token for report in reports}).exclude(
        services=[]
    )
    limits = dict(limited_tokens.values_list("pk", "services"))
    reported_at_by_slo: dict[str, datetime] = {}
    for slo, token, reported_at in reports:
        allowed = None if token is None else limits.get(token)
        if slo in known and (allowed is None or services.get(slo) in allowed):
            reported_at_by_slo[slo] = max(reported_at, reported_at_by_slo.get(slo, reported_at))
    batch = SampleBatch()
    for slo, at in reported_at_by_slo.items():
        if not known[slo].is_polled:
            batch.add(known[slo].sli, SOURCE, PRESENCE_BOOT, min(at, now), 0.0, 0.0)
    recorder.record_samples(batch, now=now, is_noted=True)
    return len(batch.by_source)


def _find_foreign(pairs: Set[tuple[str, str]]) -> Set[tuple[str, str]]:
    """Return the pairs of an SLO and a reporting service whose counts must be dropped.

    An SLO that a team owns, or whose service it owns, takes counts of this service, and of those
    of its owner and of the teams above and below it.
    """
    teams = authority.read_teams()
    if not teams:
        return frozenset()
    services = points.find_services({slo for slo, _ in pairs})
    foreign = {
        (slo, reporter)
        for slo, reporter in pairs
        if reporter != services.get(slo) and not _is_related(teams, slo, services, reporter)
    }
    for slo, reporter in sorted(foreign):
        log.info("slo.foreign_counts_dropped", slo=slo, service=reporter)
    return foreign


def _is_related(teams: Teams, slo: str, services: Mapping[str, str], reporter: str) -> bool:
    service = services.get(slo)
    owners = teams.chain_of(f"slo:{slo}") or (
        teams.chain_of(f"service:{service}") if service else ()
    )
    theirs = teams.chain_of(f"service:{reporter}")
    return not owners or (bool(theirs) and (theirs[0] in owners or owners[0] in theirs))


@transaction.atomic
def _add_batch(now: datetime) -> int:
    rows = fetch_all(_DELETE_BATCH, [BATCH_SIZE])
    if not rows:
        return 0
    known = points.load_targets({row[0] for row in rows})
    foreign = _find_foreign({(row[0], row[1].partition("/")[0]) for row in rows})
    counted = [
        CountedEvents(target.sli, instance, *counts)
        for slo, instance, *counts in rows
        if (target := known.get(slo))
        and not target.is_polled
        and (slo, instance.partition("/")[0]) not in foreign
    ]
    recorder.record_samples(SampleBatch(), counted=counted, now=now, is_noted=True)
    return len(rows)
