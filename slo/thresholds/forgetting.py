"""Alerts that were over long ago. Those of SLOs stay longer, for their postmortems."""

from datetime import datetime, timedelta

from controlplane.core.forgetting import forget

ALERTS_KEPT = timedelta(days=35)
BURNS_KEPT = timedelta(days=400)

_ALERTS = """
    DELETE FROM slo_alert WHERE id = ANY(ARRAY(
        SELECT id FROM slo_alert WHERE kind = 'threshold' AND opened_at < %(before)s
        AND resolved_at < %(before)s AND over_told_at IS NOT NULL
        ORDER BY opened_at LIMIT %(most)s FOR UPDATE SKIP LOCKED))
"""
_BURNS = """
    DELETE FROM slo_alert WHERE id = ANY(ARRAY(
        SELECT id FROM slo_alert WHERE kind = 'burn' AND opened_at < %(before)s
        AND resolved_at < %(before)s
        ORDER BY opened_at LIMIT %(most)s FOR UPDATE SKIP LOCKED))
"""


def purge(now: datetime, *, at_once: int, most: int) -> int:
    """Delete up to `most` old ones, `at_once` in one statement; returns how many."""
    return forget([(_ALERTS, ALERTS_KEPT), (_BURNS, BURNS_KEPT)], now, at_once=at_once, most=most)
