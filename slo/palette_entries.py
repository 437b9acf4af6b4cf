"""Entries of the command palette: SLO pages, objectives, and open alerts."""

from collections.abc import Sequence
from operator import attrgetter

from django.db.models import F, Q
from django.urls import reverse

from controlplane.core.palette import relevance
from controlplane.core.palette.registry import (
    ACTION,
    MAX_ENTRIES,
    PALETTE_SOURCES,
    PaletteCommand,
    PaletteEntry,
    PaletteQuery,
    register_commands,
)

from .models import Alert, Slo

ACKNOWLEDGE = {"ack", "acknowledge"}
ACKNOWLEDGED_LAST = F("acknowledged_at").asc(nulls_first=True)

register_commands(
    45,
    PaletteCommand(
        "SLOs",
        "slo",
        "slos_page",
        keys="g o",
        words="objectives budgets burn",
        has_team_filter=True,
    ),
    PaletteCommand(
        "Alerts",
        "warning",
        "alerts_page",
        keys="g l",
        words="firing pages tickets",
        has_team_filter=True,
    ),
    PaletteCommand("Threshold rules", "threshold", "thresholds_page", words="limits figures"),
)


@PALETTE_SOURCES.add(50)
def find_slos(query: PaletteQuery) -> Sequence[PaletteEntry]:
    found = Slo.objects.present()
    for word in query.words:
        columns = ("name__icontains", "service__icontains", "description__icontains")
        found = found.filter(Q(*((column, word) for column in columns), _connector=Q.OR))
    entries = [
        PaletteEntry(
            "SLO",
            one.name,
            "slo",
            reverse("slo_page", args=[one.name]),
            one.service or one.description,
            weight=query.weigh(
                relevance.score_text(query.words, one.name, f"{one.service} {one.description}"),
                f"slo:{one.name}",
            ),
            is_lasting=True,
            resource=f"slo:{one.name}",
        )
        for one in query.take(found.order_by("name"), 50, lambda one: f"slo:{one.name}")
    ]
    return sorted(entries, key=lambda entry: -entry.weight)[:MAX_ENTRIES]


@PALETTE_SOURCES.add(55)
def find_alerts(query: PaletteQuery) -> Sequence[PaletteEntry]:
    """Return open alerts that match the query, and an action to acknowledge each.

    `ack` before or instead of other words puts the actions first.
    """
    words = [word for word in query.words if word not in ACKNOWLEDGE]
    asked = len(words) < len(query.words)
    found = Alert.objects.filter(resolved_at__isnull=True)
    for word in words:
        found = found.filter(Q(subject__icontains=word) | Q(summary__icontains=word))
    entries: list[PaletteEntry] = []
    ordered = found.order_by(ACKNOWLEDGED_LAST, "-opened_at")
    for one in query.take(ordered, MAX_ENTRIES, attrgetter("resource")):
        weight = relevance.score_text(words, one.subject, one.summary) + 10 if words else 10
        weight = query.weigh(weight, one.resource)
        path = reverse("alert_page", args=[one.pk])
        if one.acknowledged_at is None and query.user.may_operate:
            entries.append(_build_acknowledge_action(one, weight + (100 if asked else -0.1)))
        detail = f"acknowledged · {one.summary}" if one.acknowledged_at else one.summary
        page = ("Alert", one.subject_label, "critical", path, detail)
        entries.append(PaletteEntry(*page, weight=weight, resource=one.resource))
    return entries


def _build_acknowledge_action(alert: Alert, weight: float) -> PaletteEntry:
    path = reverse("alert_acknowledge", args=[alert.pk])
    title = f"Acknowledge the alert for {alert.subject_label}…"
    action = (ACTION, title, "eye", path, alert.summary)
    return PaletteEntry(*action, in_dialog=True, weight=weight, resource=alert.resource)
