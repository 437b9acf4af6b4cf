"""Annotations of an SLO's plots: its alerts and exclusions, related switches, and ramps."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q
from django.urls import NoReverseMatch, reverse

from controlplane.core.instances.exports import load_requested_switches
from slo.models import Alert, Exclusion, Slo
from switches.models import Episode, Ramp
from switches.scopes import GLOBAL_ID

ALERT, EPISODE, RAMP, EXCLUSION = "alert", "episode", "ramp", "exclusion"
MAX_EACH = 60


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
    found = [
        *_load_alerts(slo, since, until),
        *_load_episodes(switches, since, until),
        *_load_ramps(switches, since, until),
        *_load_exclusions(slo, since, until),
    ]
    return sorted(found, key=lambda one: (one.begins, one.kind), reverse=True)


def _load_alerts(slo: Slo, since: datetime, until: datetime) -> list[Annotation]:
    rows = Alert.objects.filter(_overlap("opened_at", "resolved_at", since, until), slo=slo)
    return [
        Annotation(
            kind=ALERT,
            name=f"{row.label or row.severity} {row.rule.partition('>')[0]}".capitalize(),
            text=row.said,
            begins=row.opened_at,
            ends=row.resolved_at,
            path=_page_path("alert_page", row.pk),
            label=row.label,
        )
        for row in rows.order_by("-opened_at")[:MAX_EACH]
    ]


def _load_episodes(switches: Collection[str], since: datetime, until: datetime) -> list[Annotation]:
    overlap = _overlap("engaged_at", "ended_at", since, until)
    rows = Episode.objects.filter(overlap, switch__in=switches)
    return [
        Annotation(
            kind=EPISODE,
            name=row.switch_id,
            text=row.reason,
            begins=row.engaged_at,
            ends=row.ended_at,
            path=_page_path("switch_page", *row.switch_id.split(":", 1)),
        )
        for row in rows.order_by("-engaged_at")[:MAX_EACH]
    ]


def _load_ramps(switches: Collection[str], since: datetime, until: datetime) -> list[Annotation]:
    overlap = _overlap("job__created_at", "job__finished_at", since, until)
    rows = Ramp.objects.filter(overlap, switch__in=switches)
    return [
        Annotation(
            kind=RAMP,
            name=row.switch_id,
            text=row.justification,
            begins=row.job.created_at,
            ends=row.job.finished_at,
            path=_page_path("ramp_page", row.pk),
        )
        for row in rows.select_related("job").order_by("-job__created_at")[:MAX_EACH]
    ]


def _load_exclusions(slo: Slo, since: datetime, until: datetime) -> list[Annotation]:
    overlap = _overlap("starts_at", "ends_at", since, until)
    rows = Exclusion.objects.filter(overlap, slo=slo, removed_at__isnull=True)
    return [
        Annotation(EXCLUSION, "Not counted", row.reason, row.starts_at, row.ends_at)
        for row in rows.order_by("-starts_at")[:MAX_EACH]
    ]


def _overlap(begin: str, end: str, since: datetime, until: datetime) -> Q:
    is_unfinished = Q(**{f"{end}__isnull": True})
    return Q(**{f"{begin}__lt": until}) & (is_unfinished | Q(**{f"{end}__gt": since}))


def _page_path(name: str, *arguments: str | int) -> str:
    try:
        return reverse(name, args=arguments)
    except NoReverseMatch:
        return ""
