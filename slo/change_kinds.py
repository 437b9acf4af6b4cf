"""The changes that this app adds to the change feed, of SLOs and rules, and its alerts."""

from collections.abc import Collection
from datetime import datetime
from typing import Any

from django.db.models import BooleanField, ExpressionWrapper, Q, QuerySet

from controlplane.core.audit import change_feed
from controlplane.core.audit.change_feed import (
    ALERT_READERS,
    CHANGE_KINDS,
    RELATED_TARGETS,
    AlertStart,
    ChangeKind,
    Feed,
)
from controlplane.core.threshold_metrics import THRESHOLD_METRICS
from slo.alerts import notifications
from slo.models import Alert, Slo

MAX_RELATED = 1000
MAX_READ = 500

CHANGE_KINDS.register(
    *(
        ChangeKind(f"slo.{done}", "slo", text, lambda target: f"/slos/{target[4:]}/")
        for done, text in (
            ("created", "SLO {name} created"),
            ("changed", "SLO {name} changed"),
            ("removed", "SLO {name} removed"),
            ("exclusion_added", "SLO {name}: exclusion added"),
            ("exclusion_removed", "SLO {name}: exclusion removed"),
        )
    ),
    *(
        ChangeKind(
            f"threshold.{done}",
            "threshold",
            f"Threshold rule {{name}} {done}",
            lambda _: "/slos/thresholds/",
        )
        for done in ("created", "changed", "removed")
    ),
)


@RELATED_TARGETS.add()
def find_related_slos(services: Collection[str]) -> Collection[str]:
    rows = Slo.objects.present().filter(service__in=services).values_list("name", flat=True)
    return [f"slo:{name}" for name in rows[:MAX_RELATED]]


@ALERT_READERS.add()
def list_alert_starts(
    since: datetime, until: datetime, services: Collection[str], subjects: Collection[str]
) -> Feed[AlertStart]:
    """Read alerts as :data:`change_feed.ReadAlerts`.

    Alerts which only say that one of `subjects` is engaged are left out: they tell nothing new.
    """
    is_related = Q(service__in=[*filter(None, services)]) | Q(subject__in=subjects)
    elsewhere = [name for name, one in THRESHOLD_METRICS.items() if one.counted_elsewhere]
    opened = Alert.objects.filter(opened_at__gte=since, opened_at__lte=until)
    opened = opened.exclude(threshold__metric__in=elsewhere, subject__in=subjects)
    rows: QuerySet[Any, Any] = opened.annotate(
        is_related=ExpressionWrapper(is_related, output_field=BooleanField())
    )
    listed: dict[bool, list[AlertStart]] = {True: [], False: []}
    for row in rows.order_by("-is_related", "-opened_at", "-pk")[:MAX_READ]:
        listed[row.is_related].append(
            AlertStart(
                row.opened_at,
                row.resolved_at,
                row.severity,
                row.summary,
                notifications.alert_path(row),
            )
        )
    related, others = listed[True], listed[False]
    return Feed(
        since,
        until,
        related[: change_feed.MAX_RELATED],
        others[: change_feed.MAX_OTHERS],
        len(related),
        len(others),
    )
