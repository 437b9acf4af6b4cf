"""Retention of the tables of SLOs.

The age of an SLO's history counts back from its own last counter row, so that imported old history
stays. Alerts of SLOs are kept longer than alerts of threshold rules, for postmortems.
"""

from datetime import datetime, timedelta
from functools import partial

from controlplane.core.retention import RETENTION_RULES, RetentionRule, keep_permanently, purge
from slo.counters import retention

_OLD = """
    hour >= 0 AND hour < (
        SELECT least(s.last, extract(epoch FROM now())::bigint / 60) / 60
               - greatest({least}, coalesce(o.window_days + {more}, 0)) * 24
        FROM slo_sli s LEFT JOIN slo_slo o ON o.id = s.slo_id WHERE s.id = it.sli_id)
"""

_purged_rule = partial(RetentionRule, tick="slo.purge")
_alert_rule = partial(_purged_rule, model="slo.Alert", since="opened_at", order="opened_at")

HOURS = _purged_rule(
    name="slo-history",
    model="slo.CounterHour",
    parts=("slo.CounterMinute",),
    period=timedelta(days=retention.MIN_DAYS),
    where=_OLD.format(least=retention.MIN_DAYS, more=retention.EXTRA_DAYS),
    since="to_timestamp(nullif(greatest(hour, 0), 0) * 3600.0)",
    why="Counts by the minute, as far back as any budget needs.",
    exempt=f"Minutes within an SLO's window and {retention.EXTRA_DAYS} days; totals, forever.",
)
SAMPLES = RetentionRule(
    name="slo-samples",
    model="slo.StoredSample",
    period=retention.SAMPLES_KEPT_FOR,
    where="minute < extract(epoch FROM %(before)s::timestamptz)::bigint / 60"
    " AND EXISTS (SELECT FROM slo_series s"
    " WHERE s.id = it.series_id AND s.source <> 'import' AND (s.at < %(before)s"
    " OR it.minute < (SELECT max(m.minute) FROM slo_sample m WHERE m.series_id = s.id"
    " AND m.minute < extract(epoch FROM %(before)s::timestamptz)::bigint / 60)))",
    since="to_timestamp(minute * 60.0)",
    tick="slo.samples",
    why="Pushed points, as long as late points may arrive between them.",
    exempt="The last point of each series; imported points.",
)
SERIES = _purged_rule(
    name="slo-series",
    model="slo.Series",
    period=retention.SERIES_KEPT_FOR,
    where="at < %(before)s AND NOT EXISTS (SELECT FROM slo_sample m WHERE m.series_id = it.id)",
    since="at",
    why="Last counters of each source, so that nothing is counted twice when it returns.",
    exempt=(
        f"Boots beyond the newest {retention.MAX_BOOTS_KEPT} of a source are removed after a day."
    ),
)
BATCHES = _purged_rule(
    name="slo-batches",
    model="slo.DeltaBatch",
    period=timedelta(days=8),
    since="received_at",
    order="received_at",
    why="Ids of received batches, so that a repeated batch is not counted again.",
)
REMOVED = _purged_rule(
    name="removed-slos",
    model="slo.Slo",
    parts=("slo.Sli", "slo.SloStatus", "slo.Exclusion", "slo.DeferredUpdate"),
    period=retention.REMOVED_KEPT_FOR,
    where=retention.PURGEABLE.format(slo="it"),
    since="removed_at",
    why="Removed SLOs, so that a removal can be reviewed and reverted.",
    exempt="SLOs that were not removed, or that still have alerts.",
)
ALERTS = _alert_rule(
    name="alerts-of-thresholds",
    period=timedelta(days=35),
    where="kind = 'threshold' AND opened_at < %(before)s AND resolved_at < %(before)s"
    " AND over_told_at IS NOT NULL",
    bounds=(8, 400),
    why="Past alerts of threshold rules, for the weekly report.",
    exempt="Open alerts, and alerts of SLOs.",
)
BURNS = _alert_rule(
    name="alerts-of-slos",
    period=timedelta(days=400),
    where="kind = 'burn' AND opened_at < %(before)s AND resolved_at < %(before)s",
    bounds=(35, 3650),
    why="Past alerts of SLOs, for postmortems and yearly comparison.",
    exempt="Open alerts.",
)

RETENTION_RULES.register(HOURS, SAMPLES, SERIES, BATCHES, REMOVED, ALERTS, BURNS)

keep_permanently("Set and removed by people or configuration files.", "slo.ThresholdRule")
keep_permanently(
    "One row, or one row per evaluated object, removed with it.", "slo.EvaluatedMinute"
)
keep_permanently("Removed within seconds, when added to the minutes.", "slo.ReportedEvents")


def purge_rows(now: datetime, *, at_once: int, most: int) -> int:
    """Delete old delta batches and alerts by the retention rules; return how many were deleted.

    At most `most` rows are deleted by each rule, in transactions of `at_once` rows.
    """
    return purge([BATCHES, ALERTS, BURNS], now, at_once=at_once, most=most)
