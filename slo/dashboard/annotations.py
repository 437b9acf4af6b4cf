"""Annotations of an SLO's plots: its alerts and exclusions, related switches, and ramps."""

from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from django.db.models import Model, Q, QuerySet
from django.urls import NoReverseMatch, reverse

from controlplane.core.instances.exports import load_requested_switches
from slo.models import Alert, Exclusion, Slo
from switches.models import Episode, Ramp
from switches.scopes import GLOBAL_ID

ALERT, EPISODE, RAMP, EXCLUSION = "alert", "episode", "ramp", "exclusion"
MAX_EACH = 60
M = TypeVar("M", bound=Model)


@dataclass(frozen=True)
class Annotation:
    """An event shown on a plot, from `begins` to `ends`, which is None while the event lasts.

    `label` is `page` or `ticket` for an alert; `path` is the page of the event, if any.
    """

    kind: str
    name: str
    text: str
    begins: datetime
    ends: datetime | None
    path: str = ""
    label: str = ""


def load_annotations(slo: Slo, since: datetime, until: datetime) -> list[Annotation]:
    """Return an SLO's annotations between two times, newest first; at most `MAX_EACH` of a kind."""
    in_actions = {str(one["switch"]) for one in slo.actions if one.get("switch")}
    switches = {GLOBAL_ID, *in_actions, *load_requested_switches(slo.service)}

    def overlapping(rows: QuerySet[M], begin: str, end: str) -> QuerySet[M]:
        is_unfinished = Q(**{f"{end}__isnull": True})
        overlap = Q(**{f"{begin}__lt": until}) & (is_unfinished | Q(**{f"{end}__gt": since}))
        return rows.filter(overlap).order_by(f"-{begin}")[:MAX_EACH]

    alerts = overlapping(Alert.objects.filter(slo=slo), "opened_at", "resolved_at")
    episodes = overlapping(Episode.objects.filter(switch__in=switches), "engaged_at", "ended_at")
    ramps = overlapping(
        Ramp.objects.filter(switch__in=switches).select_related("job"),
        "job__created_at",
        "job__finished_at",
    )
    exclusions = overlapping(
        Exclusion.objects.filter(slo=slo, removed_at__isnull=True), "starts_at", "ends_at"
    )
    found = [
        *(
            Annotation(
                ALERT,
                f"{row.label or row.severity} {row.rule.partition('>')[0]}".capitalize(),
                row.summary,
                row.opened_at,
                row.resolved_at,
                _page_path("alert_page", row.pk),
                row.label,
            )
            for row in alerts
        ),
        *(
            Annotation(
                EPISODE,
                row.switch_id,
                row.reason,
                row.engaged_at,
                row.ended_at,
                _page_path("switch_page", *row.switch_id.split(":", 1)),
            )
            for row in episodes
        ),
        *(
            Annotation(
                RAMP,
                row.switch_id,
                row.justification,
                row.job.created_at,
                row.job.finished_at,
                _page_path("ramp_page", row.pk),
            )
            for row in ramps
        ),
        *(
            Annotation(EXCLUSION, "Not counted", row.reason, row.starts_at, row.ends_at)
            for row in exclusions
        ),
    ]
    return sorted(found, key=lambda one: (one.begins, one.kind), reverse=True)


def _page_path(name: str, *arguments: str | int) -> str:
    try:
        return reverse(name, args=arguments)
    except NoReverseMatch:
        return ""
