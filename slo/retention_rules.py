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
    why="What was counted, by the minute, as far as any budget looks back.",
    exempt=f"An SLO's whole window and {retention.EXTRA_DAYS} days; what it came to, for ever.",
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
    why="For as long as a late figure may still come in between.",
    exempt="The last of each series; those of imported files.",
)
SERIES = _purged_rule(
    name="slo-series",
    model="slo.Series",
    period=retention.SERIES_KEPT_FOR,
    where="at < %(before)s AND NOT EXISTS (SELECT FROM slo_sample m WHERE m.series_id = it.id)",
    since="at",
    why="What each source said last, so that nothing is counted twice when it comes back.",
    exempt=f"Sooner, after a day: boots beyond the newest {retention.MAX_BOOTS_KEPT} of a source.",
)
BATCHES = _purged_rule(
    name="slo-batches",
    model="slo.DeltaBatch",
    period=timedelta(days=8),
    since="received_at",
    order="received_at",
    why="A batch that is sent again is not counted again.",
)
REMOVED = _purged_rule(
    name="removed-slos",
    model="slo.Slo",
    parts=("slo.Sli", "slo.SloStatus", "slo.Exclusion", "slo.DeferredUpdate"),
    period=retention.REMOVED_KEPT_FOR,
    where=retention.PURGEABLE.format(slo="it"),
    since="removed_at",
    why="So that a removal can be looked at, and its files put back.",
    exempt="What was not removed, and the whole of one while there are alerts of it.",
)
ALERTS = _alert_rule(
    name="alerts-of-thresholds",
    period=timedelta(days=35),
    where="kind = 'threshold' AND opened_at < %(before)s AND resolved_at < %(before)s"
    " AND over_told_at IS NOT NULL",
    bounds=(8, 400),
    why="What threshold rules told of, for the weekly report.",
    exempt="What is open, and those of SLOs.",
)
BURNS = _alert_rule(
    name="alerts-of-slos",
    period=timedelta(days=400),
    where="kind = 'burn' AND opened_at < %(before)s AND resolved_at < %(before)s",
    bounds=(35, 3650),
    why="What burned budgets, for postmortems and for comparison a year later.",
    exempt="What is open.",
)

RETENTION_RULES.register(HOURS, SAMPLES, SERIES, BATCHES, REMOVED, ALERTS, BURNS)

keep_permanently("Set and removed by people or configuration files.", "slo.ThresholdRule")
keep_permanently(
    "One row, or one for each thing that is judged; it goes with it.", "slo.EvaluatedMinute"
)
keep_permanently(
    "Goes within seconds, as soon as it is added to the minutes.", "slo.ReportedEvents"
)


def purge_rows(now: datetime, *, at_once: int, most: int) -> int:
    """Delete old delta batches and alerts by the retention rules; return how many were deleted.

    At most `most` rows are deleted by each rule, in transactions of `at_once` rows.
    """
    return purge([BATCHES, ALERTS, BURNS], now, at_once=at_once, most=most)
