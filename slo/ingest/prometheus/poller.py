"""Polling of Prometheus: claims due SLIs, queries their counters, and records them.

Each minute is queried some seconds after its end: once Prometheus has scraped its samples, and
before SLOs are evaluated at it. No transaction is open during a query.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import structlog
from django.db import transaction

from controlplane.core.egress_guard import name_resolution
from controlplane.core.sql import fetch_all
from slo.arithmetic.minutes import MINUTES_A_DAY, end_of, last_ended
from slo.ingest import recorder
from slo.ingest.samples import SampleBatch
from slo.models import Sli, Slo
from slo.models.objective import PROMETHEUS

from . import client
from .client import CounterQuery, QueryResult

log = structlog.get_logger(__name__)

POLL_SECONDS = 5
SCRAPE_DELAY = timedelta(seconds=5)
MAX_MINUTES_PER_POLL = 30
MAX_MINUTES_BACK = MINUTES_A_DAY - 2
"""Most past minutes to query: just under a day, because older samples are refused."""
LEASE = timedelta(seconds=60)
RETRY_AFTER = timedelta(seconds=30)
MAX_SLIS = 500
BATCH_SIZE = 100
UPDATED_FIELDS = ("polled_to", "poll_after", "source_error", "source_error_since")

# Materialized, because a plan that repeats the subquery for each row would claim too many.
_CLAIM = """
    WITH due AS MATERIALIZED (
        SELECT one.id, slo.source, one.asked_to FROM slo_sli one
        JOIN slo_slo slo ON slo.id = one.slo_id
        WHERE slo.removed_at IS NULL AND slo.source->>'type' = 'prometheus'
          AND (one.ask_after IS NULL OR one.ask_after <= %(now)s OR one.ask_after > %(until)s)
          AND (one.asked_to IS NULL OR one.asked_to < %(last)s)
        ORDER BY one.ask_after NULLS FIRST, one.id LIMIT %(most)s
        FOR UPDATE OF one SKIP LOCKED
    )
    UPDATE slo_sli AS sli SET ask_after = %(until)s
    FROM due WHERE sli.id = due.id
    RETURNING sli.id, due.source->>'url', due.source->>'good', due.source->>'total', sli.asked_to
"""


def poll_due(now: datetime, *, resolver: name_resolution.Resolve = name_resolution.resolve) -> int:
    """Query and record the counters of the due SLIs; return how many readings were recorded."""
    queries = _claim_due(now)
    if not queries:
        return 0
    results = client.query_all(queries, resolver=resolver)
    keys = sorted(results)
    return sum(
        _save_results(queries, results, keys[start : start + BATCH_SIZE], now)
        for start in range(0, len(keys), BATCH_SIZE)
    )


def due_moments(polled_to: int | None, now: datetime) -> tuple[datetime, ...]:
    """Return the end times of the minutes to query next, ascending.

    These are the minutes after `polled_to`, the last one queried, within limits; only the latest if
    `polled_to` is None.
    """
    last = last_ended(now - SCRAPE_DELAY)
    first = last if polled_to is None else max(polled_to + 1, last - MAX_MINUTES_BACK)
    return tuple(
        end_of(minute) for minute in range(first, min(first + MAX_MINUTES_PER_POLL, last + 1))
    )


def _claim_due(now: datetime) -> dict[int, CounterQuery]:
    """Claim the SLIs to query now, so that no other process does; return queries by SLI id."""
    last = last_ended(now - SCRAPE_DELAY)
    parameters = {"now": now, "until": now + LEASE, "last": last, "most": MAX_SLIS}
    return {
        key: CounterQuery(url, good, total, due_moments(polled_to, now))
        for key, url, good, total, polled_to in fetch_all(_CLAIM, parameters)
    }


@transaction.atomic
def _save_results(
    queries: Mapping[int, CounterQuery],
    results: Mapping[int, QueryResult],
    keys: Sequence[int],
    now: datetime,
) -> int:
    """Record the results of SLIs not changed since the query; return the number of readings."""
    rows = Sli.objects.select_for_update(no_key=True).order_by("pk")
    slis = list(rows.filter(pk__in=keys, poll_after=now + LEASE))
    # Read after the lock: a change of the source waits for it before deleting the old series.
    slos = Slo.objects.present().in_bulk([sli.slo_id for sli in slis])
    current = []
    for sli in slis:
        query, slo = queries[sli.pk], slos.get(sli.slo_id or 0)
        source = slo.source if slo else {}
        if (query.url, query.good, query.total) == tuple(map(source.get, ("url", "good", "total"))):
            current.append(sli)
    batch = SampleBatch()
    for sli in current:
        for one in results[sli.pk].readings:
            batch.add(sli.pk, PROMETHEUS, "", one.at, one.good, one.total)
    recorder.record_samples(batch, now=now)
    for sli in current:
        _update_sli(sli, queries[sli.pk], results[sli.pk], now)
    Sli.objects.bulk_update(current, UPDATED_FIELDS)
    return sum(len(results[sli.pk].readings) for sli in current)


def _update_sli(sli: Sli, query: CounterQuery, result: QueryResult, now: datetime) -> None:
    """Set, without saving, an SLI's last queried minute, its error, and when to query it next."""
    if result.queried:
        sli.polled_to = last_ended(query.moments[result.queried - 1])
    if result.error and not sli.source_error:
        sli.source_error_since = now
        log.warning("slo.source_failed", sli=sli.pk, url=query.url, error=result.error)
    if result.queried or result.error:
        sli.source_error = result.error
    if not sli.source_error:
        sli.source_error_since = None
    sli.poll_after = now + RETRY_AFTER if result.error else now
