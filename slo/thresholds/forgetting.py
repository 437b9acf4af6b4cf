"""Alerts that were over long ago. Those of SLOs stay longer, for their postmortems."""

from datetime import datetime, timedelta

from controlplane.core import retention

ALERTS = retention.rule(
    retention.Rule(
        name="alerts-of-thresholds",
        model="slo.Alert",
        kept=timedelta(days=35),
        where="kind = 'threshold' AND opened_at < %(before)s AND resolved_at < %(before)s"
        " AND over_told_at IS NOT NULL",
        since="opened_at",
        order="opened_at",
        bounds=(8, 400),
        tick="slo.purge",
        why="What threshold rules told of, for the weekly report.",
        but="What is open, and those of SLOs.",
    )
)
BURNS = retention.rule(
    retention.Rule(
        name="alerts-of-slos",
        model="slo.Alert",
        kept=timedelta(days=400),
        where="kind = 'burn' AND opened_at < %(before)s AND resolved_at < %(before)s",
        since="opened_at",
        order="opened_at",
        bounds=(35, 3650),
        tick="slo.purge",
        why="What burned budgets, for postmortems and for comparison a year later.",
        but="What is open.",
    )
)


def purge_alerts(now: datetime, *, at_once: int, most: int) -> int:
    """Delete up to `most` old ones, `at_once` in one transaction; returns how many."""
    return retention.purge([ALERTS, BURNS], now, at_once=at_once, most=most)
