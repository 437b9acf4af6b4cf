"""Deletion of old counters, and of removed SLOs once their alerts are deleted."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db import transaction

from controlplane.core.retention import purge_by_statements
from controlplane.core.sql import execute, fetch_all
from slo.arithmetic.minutes import last_ended
from slo.models import Series
from slo.models.counters import IMPORTED

from . import hours, postgres_arrays, writer
from .hours import MINUTES_AN_HOUR
from .reader import ORIGIN, load_counts

MIN_DAYS = 35
EXTRA_DAYS = 5
SAMPLES_KEPT_FOR = timedelta(hours=25)
SERIES_KEPT_FOR = timedelta(days=35)
MAX_BOOTS_KEPT = 100
"""Newest boots of a source to keep; older boots are deleted along with their last samples."""
MAX_SLIS = 100
# The age of an SLI's history counts from its own last row, so that imported history of last year
# stays; a row in the future does not count.
_OLD = """
    SELECT s.id, old.hour FROM slo_sli s LEFT JOIN slo_slo o ON o.id = s.slo_id
    CROSS JOIN LATERAL (
        SELECT least(s.last, %(minute)s) / 60
               - greatest(%(least)s, coalesce(o.window_days + %(more)s, 0)) * 24 AS hour
    ) old
    WHERE s.id > %(after)s AND s.last IS NOT NULL AND EXISTS (
        SELECT FROM slo_hour h WHERE h.sli_id = s.id AND h.hour >= 0 AND h.hour < old.hour
    ) ORDER BY s.id LIMIT %(most)s
"""
_DELETE = """
    DELETE FROM slo_hour h USING unnest(%(slis)s::bigint[], %(hours)s::int[]) AS target (sli, hour)
    WHERE h.sli_id = target.sli AND h.hour < target.hour
"""
_DELETE_SAMPLES = """
    DELETE FROM slo_sample USING unnest(%(slis)s::bigint[], %(hours)s::int[]) AS target (sli, hour),
        slo_series s
    WHERE s.sli_id = target.sli AND series_id = s.id AND minute < target.hour * 60
"""
_BEGIN = """
    UPDATE slo_sli s SET first = greatest(s.first, target.hour * 60)
    FROM unnest(%(slis)s::bigint[], %(hours)s::int[]) AS target (sli, hour) WHERE s.id = target.sli
"""
# The last minute before the limit stays until a later one is as old: late samples are inserted
# after it. Each series costs an index look-up or two, however many samples there are.
_SAMPLES = """
    DELETE FROM slo_sample WHERE (series_id, minute) IN (
        SELECT s.id, old.minute FROM slo_series s
        CROSS JOIN LATERAL (
            SELECT minute FROM slo_sample WHERE series_id = s.id
              AND minute < extract(epoch FROM %(before)s::timestamptz)::bigint / 60
              AND (s.at < %(before)s OR minute < (
                SELECT max(minute) FROM slo_sample WHERE series_id = s.id
                  AND minute < extract(epoch FROM %(before)s::timestamptz)::bigint / 60))
        ) old
        WHERE s.id = ANY(%(series)s::bigint[]) LIMIT %(most)s)
"""
# If one boot of a source were deleted and then reported again, all its events would count twice. So
# the newest boots are kept longer, and in the end all boots of a source are deleted together: then
# its next sample is a new baseline. Rows of an SLI locked by a writer wait for the next purge.
_SERIES = """
    DELETE FROM slo_series WHERE at < %(before)s AND id = ANY(ARRAY(
        SELECT old.id FROM slo_series old JOIN slo_sli i ON i.id = old.sli_id
        WHERE old.at < %(before)s {}
          AND NOT EXISTS (SELECT FROM slo_sample WHERE series_id = old.id)
        LIMIT %(most)s FOR NO KEY UPDATE OF i SKIP LOCKED))
"""
_BOOTS = """
    AND old.id IN (SELECT id FROM (
        SELECT id, row_number() OVER (PARTITION BY sli_id, source ORDER BY at DESC, id DESC) AS n
        FROM slo_series) counted WHERE n > {})
"""
REMOVED_KEPT_FOR = timedelta(days=35)
REMOVED_BATCH_SIZE = 10
"""SLIs or SLOs to delete in a transaction: each may have a year of minutes."""
PURGEABLE = """
    removed_at < %(before)s AND NOT EXISTS (SELECT FROM slo_alert a WHERE a.slo_id = {slo}.id)
"""
_SLIS = f"""
    SELECT i.id FROM slo_sli i LEFT JOIN slo_slo o ON o.id = i.slo_id
    WHERE ({PURGEABLE.format(slo="o")}) OR (i.slo_id IS NULL
          AND coalesce(to_timestamp(i.last * 60.0), i.created_at) < %(before)s)
    ORDER BY i.id LIMIT %(most)s FOR UPDATE OF i SKIP LOCKED
"""  # noqa: S608
_SLOS = f"""
    SELECT o.id FROM slo_slo o WHERE {PURGEABLE.format(slo="o")}
    AND NOT EXISTS (SELECT FROM slo_sli WHERE slo_id = o.id)
    ORDER BY o.id LIMIT %(most)s FOR UPDATE SKIP LOCKED
"""  # noqa: S608
_DELETE_SLIS = (
    "DELETE FROM slo_sample WHERE series_id IN"
    " (SELECT id FROM slo_series WHERE sli_id = ANY(%(ids)s::bigint[]))",
    "DELETE FROM slo_series WHERE sli_id = ANY(%(ids)s::bigint[])",
    "DELETE FROM slo_minute WHERE sli_id = ANY(%(ids)s::bigint[])",
    "DELETE FROM slo_hour WHERE sli_id = ANY(%(ids)s::bigint[])",
    "DELETE FROM slo_delayed WHERE sli_id = ANY(%(ids)s::bigint[])",
    "DELETE FROM slo_sli WHERE id = ANY(%(ids)s::bigint[])",
)
_DELETE_SLOS = (
    "DELETE FROM slo_exclusion WHERE slo_id = ANY(%(ids)s::bigint[])",
    "DELETE FROM slo_standing WHERE slo_id = ANY(%(ids)s::bigint[])",
    "DELETE FROM slo_slo WHERE id = ANY(%(ids)s::bigint[])",
)


def purge_samples(now: datetime, *, at_once: int, most: int) -> int:
    """Delete samples over 25 hours old; return how many rows were deleted.

    The latest old row of each series stays, because a late sample needs its predecessor. Imported
    samples stay, so that importing their file again adds nothing.
    """
    done = after = 0
    rows = Series.objects.exclude(source=IMPORTED).order_by("pk").values_list("pk", flat=True)
    while done < most and (some := list(rows.filter(pk__gt=after)[:at_once])):
        arguments = {"series": some, "before": now - SAMPLES_KEPT_FOR, "most": at_once}
        deleted = execute(_SAMPLES, arguments)
        done += deleted
        if deleted < at_once:
            after = some[-1]
    return done


def purge_old(now: datetime, *, at_once: int, most: int) -> int:
    """Delete old sample series and counters; return how many rows were deleted."""
    rules = [
        (_SERIES.format(_BOOTS.format(MAX_BOOTS_KEPT)), SAMPLES_KEPT_FOR),
        (_SERIES.format(""), SERIES_KEPT_FOR),
    ]
    return purge_by_statements(rules, now, at_once=at_once, most=most) + _purge_history(
        last_ended(now), most
    )


def _purge_history(minute: int, most: int) -> int:
    done = after = 0
    while done < most:
        arguments = {"least": MIN_DAYS, "more": EXTRA_DAYS, "after": after, "most": MAX_SLIS}
        old = dict(fetch_all(_OLD, {**arguments, "minute": minute}))
        if not old:
            break
        done += _delete_hours(old)
        after = max(old)
    return done


@transaction.atomic
def _delete_hours(old: dict[int, int]) -> int:
    """Delete old packed hours: for each SLI id in `old`, those before the given hour.

    The row `ORIGIN` keeps the counters at the end of the deleted hours. Return how many rows were
    deleted.
    """
    writer.lock_slis(old.keys())
    before = {sli: [hour * MINUTES_AN_HOUR - 1] for sli, hour in old.items()}
    origins = [
        hours.hour_row(sli, ORIGIN, [count] * MINUTES_AN_HOUR)
        for (sli, _), count in load_counts(before).items()
    ]
    arguments = postgres_arrays.number_arrays(slis=old, hours=old.values())
    deleted = execute(_DELETE, arguments)
    execute(_DELETE_SAMPLES, arguments)
    hours.save_hours(origins)
    execute(_BEGIN, arguments)
    return deleted


def purge_removed(now: datetime, *, most: int) -> int:
    """Delete long-removed SLOs and unused histogram edges; return how many rows were deleted."""
    done = 0
    for found, statements in ((_SLIS, _DELETE_SLIS), (_SLOS, _DELETE_SLOS)):
        while done < most and (deleted := _purge_batch(found, statements, now - REMOVED_KEPT_FOR)):
            done += deleted
    return done


@transaction.atomic
def _purge_batch(found: str, statements: Sequence[str], before: datetime) -> int:
    ids = [row[0] for row in fetch_all(found, {"before": before, "most": REMOVED_BATCH_SIZE})]
    return sum(execute(statement, {"ids": ids}) for statement in (statements if ids else ()))
