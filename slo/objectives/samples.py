"""SLOs that came with Switchgear: which are in use, and removal of the rest."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from controlplane.core.configuration.readers import SampleItem, SampleTimes
from controlplane.core.jobs import planned_gates
from slo.models import Alert, Exclusion, Sli, Slo

from . import services

KIND = "SLO"


def list_samples(loaded: SampleTimes) -> list[SampleItem]:
    """Return the loaded SLOs that still exist.

    An SLO is in use if it has events, alerts or exclusions, or if a live ramp's gate names it.
    """
    return _build_items(list(_select_loaded(loaded)), loaded)


def remove_samples(
    loaded: SampleTimes, *, now: datetime
) -> tuple[list[SampleItem], list[dict[str, Any]]]:
    """Remove the samples that are not in use.

    Return all samples, and the audit rows, which the caller writes.
    """
    slos = list(_select_loaded(loaded).select_for_update(no_key=True))
    items = _build_items(slos, loaded)
    removable = [slo for slo, item in zip(slos, items, strict=True) if not item.kept]
    return items, [services.mark_removed(slo, now) for slo in removable]


def _select_loaded(loaded: SampleTimes) -> QuerySet[Slo]:
    names = [name for kind, name in loaded if kind == KIND]
    return Slo.objects.present().filter(name__in=names).order_by("pk")


def _build_items(slos: Sequence[Slo], loaded: SampleTimes) -> list[SampleItem]:
    kept = _find_uses(slos) | {
        slo.name: "changed after it was loaded"
        for slo in slos
        if slo.changed_at != loaded[KIND, slo.name]
    }
    return [SampleItem(KIND, slo.name, kept.get(slo.name, "")) for slo in slos]


def _find_uses(slos: Sequence[Slo]) -> dict[str, str]:
    """Return why SLOs are in use, by name."""
    gates = planned_gates.find_planned("slo")
    uses = {name: f"the ramp of {switch} names it" for name, switch in gates.items()}
    for kept, rows in (
        ("it has exclusions", Exclusion.objects),
        ("it has alerts", Alert.objects),
        ("it has data", Sli.objects.filter(first__isnull=False)),
    ):
        names = rows.filter(slo__in=slos).values_list("slo__name", flat=True)
        uses |= dict.fromkeys(names.distinct(), kept)
    return uses
