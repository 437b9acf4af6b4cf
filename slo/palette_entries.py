"""Entries of the command palette: SLO pages, objectives, and open alerts."""

from collections.abc import Sequence

from django.db.models import Q
from django.urls import reverse

from controlplane.core.palette import matching
from controlplane.core.palette.registry import FEW, Asked, Command, Entry, commands, things

from .models import Alert, Slo

commands(
    45,
    Command("SLOs", "slo", "slos_page", keys="g o", words="objectives budgets burn"),
    Command("Alerts", "critical", "alerts_page", keys="g l", words="firing pages tickets"),
    Command("Threshold rules", "threshold", "thresholds_page", words="limits figures"),
)


@things(50)
def objectives(asked: Asked) -> Sequence[Entry]:
    found = Slo.objects.present()
    for word in asked.words[:6]:
        found = found.filter(
            Q(name__icontains=word) | Q(service__icontains=word) | Q(description__icontains=word)
        )
    entries = [
        Entry(
            "SLO",
            one.name,
            "slo",
            reverse("slo_page", args=[one.name]),
            one.service or one.description,
            weight=matching.weight(asked.words, one.name, f"{one.service} {one.description}"),
            keeps=True,
        )
        for one in found.order_by("name")[:50]
    ]
    return sorted(entries, key=lambda entry: -entry.weight)[:FEW]


@things(55)
def alerts(asked: Asked) -> Sequence[Entry]:
    """Return open alerts that match; resolved ones are on their page."""
    found = Alert.objects.filter(resolved_at__isnull=True)
    for word in asked.words[:6]:
        found = found.filter(Q(subject__icontains=word) | Q(said__icontains=word))
    return [
        Entry(
            "Alert",
            one.subject,
            "critical",
            reverse("alert_page", args=[one.pk]),
            one.said,
            weight=matching.weight(asked.words, one.subject, one.said) + 10,
        )
        for one in found.order_by("-opened_at")[:FEW]
    ]
