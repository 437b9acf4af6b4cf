"""SLOs that came with Switchgear: which are in use, and removal of the rest."""

from datetime import datetime
from typing import Any

from django.db.models import Exists, OuterRef

from controlplane.core.configuration.services import SampleItem, SampleTimes
from slo.models import Alert, Exclusion, Sli, Slo

from . import services

KIND = "SLO"


def list_samples(loaded: SampleTimes) -> list[SampleItem]:
    """Return the loaded SLOs that still exist; one with events, alerts or exclusions is in use."""
    return [_build_item(slo, loaded) for slo in _find_slos(loaded)]


def remove_samples(
    loaded: SampleTimes, *, now: datetime
) -> tuple[list[SampleItem], list[dict[str, Any]]]:
    """Remove the samples that are not in use.

    Return all samples, and the audit rows, which the caller writes.
    """
    names = [slo.name for slo in _find_slos(loaded)]
    present = Slo.objects.present().filter(name__in=names).order_by("pk")
    list(present.select_for_update(no_key=True))  # Listed again, because one may have changed.
    slos = _find_slos(loaded)
    items = [_build_item(slo, loaded) for slo in slos]
    removable = [slo for slo, item in zip(slos, items, strict=True) if not item.kept]
    return items, [services.mark_removed(slo, now) for slo in removable]


def _find_slos(loaded: SampleTimes) -> list[Any]:
    names = [name for kind, name in loaded if kind == KIND]
    own_rows = {"slo": OuterRef("pk")}
    slos = Slo.objects.present().filter(name__in=names)
    return list(
        slos.annotate(
            has_events=Exists(Sli.objects.filter(**own_rows, first__isnull=False)),
            has_alerts=Exists(Alert.objects.filter(**own_rows)),
            has_exclusions=Exists(Exclusion.objects.filter(**own_rows)),
        ).order_by("name")
    )


def _build_item(slo: Any, loaded: SampleTimes) -> SampleItem:
    kept = ""
    if slo.changed_at != loaded[KIND, slo.name]:
        kept = "changed after it was loaded"
    elif slo.has_events:
        kept = "it has data"
    elif slo.has_alerts:
        kept = "it has alerts"
    elif slo.has_exclusions:
        kept = "it has exclusions"
    return SampleItem(KIND, slo.name, kept)
