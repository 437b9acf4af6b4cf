"""What waits for a person by itself already, so that its alert need not say it once more."""

from datetime import datetime

from django.db.models import QuerySet

from controlplane.core import threshold_metrics as measures
from slo.models import Alert, ThresholdRule


def exclude_duplicates(alerts: QuerySet[Alert], now: datetime) -> QuerySet[Alert]:
    """Those of these alerts that wait nowhere else. Measures without an alert are not asked."""
    asked = alerts.order_by().values("threshold_id")
    for rule in ThresholdRule.objects.filter(pk__in=asked):
        known = measures.find(rule.metric)
        if known is not None and known[0].waiting is not None:
            alerts = alerts.exclude(rule=rule.name, subject__in=list(known[0].waiting(now)))
    return alerts
