"""Entries of the registry that came with Switchgear: which are in use, and removal of the rest."""

from datetime import datetime
from typing import Any

from django.db.models import Exists, OuterRef

from breakers import publication
from breakers.models import Channel, Dependency, Override, Service
from breakers.states.reporting_counts import was_reported
from controlplane.core.configuration.readers import SampleItem, SampleTimes
from controlplane.core.instances.models import Instance
from controlplane.core.jobs import planned_gates
from controlplane.core.live.change_notices import notify_changed

from . import catalog, registry

CHANGED = "changed after it was loaded"


def list_samples(loaded: SampleTimes) -> list[SampleItem]:
    """Return the loaded dependencies, services and channels that are still registered.

    A dependency that is reported or forced, or that a live ramp's gate names, is in use, as is a
    service that has instances or that a remaining dependency names.
    """
    dependencies = _list_dependencies(loaded)
    removable = {one.name for one in dependencies if not one.kept}
    return [*dependencies, *_list_services(loaded, removable), *_list_channels(loaded)]


def remove_samples(
    loaded: SampleTimes, *, now: datetime
) -> tuple[list[SampleItem], list[dict[str, Any]]]:
    """Remove the samples that are not in use, under one registry version.

    Return all samples, and the audit rows, which the caller writes.
    """
    head = publication.lock()
    items = list_samples(loaded)
    names: dict[str, list[str]] = {"dependency": [], "service": [], "channel": []}
    for one in items:
        if not one.kept:
            names[one.kind].append(one.name)
    rows = list(registry.lock_dependencies(names["dependency"]).values())
    audit_rows = [registry.mark_removed(row, now) for row in rows]
    audit_rows += catalog.SERVICES.remove(names["service"])
    audit_rows += catalog.CHANNELS.remove(names["channel"])
    if rows:
        publication.advance(head, now, *rows)
        notify_changed("breakers", *(row.name for row in rows))
    return items, audit_rows


def _list_dependencies(loaded: SampleTimes) -> list[SampleItem]:
    names = [name for kind, name in loaded if kind == "dependency"]
    found = Dependency.objects.registered().exclude(document={}).select_named(names)
    overrides = Override.objects.filter(dependency=OuterRef("pk"), ended_at__isnull=True)
    gates = planned_gates.find_planned("dependency")
    kept = {name: f"the ramp of {switch} names it" for name, switch in gates.items()}
    for why, rows in (
        ("its breakers are reported", found.filter(was_reported())),
        ("an override is in force", found.filter(Exists(overrides))),
        (CHANGED, [row for row in found if row.changed_at != loaded["dependency", row.name]]),
    ):
        kept |= {row.name: why for row in rows}
    ordered = found.order_by("caller", "callee")
    return [SampleItem("dependency", row.name, kept.get(row.name, "")) for row in ordered]


def _list_services(loaded: SampleTimes, removable: set[str]) -> list[SampleItem]:
    names = [name for kind, name in loaded if kind == "service"]
    running = set(Instance.objects.filter(service__in=names).values_list("service", flat=True))
    named_by: dict[str, str] = {}
    for row in Dependency.objects.registered().only("caller", "callee"):
        if row.name not in removable:
            named_by.setdefault(row.caller, row.name)
            named_by.setdefault(row.callee, row.name)
    items = []
    for slug, changed_at in _read_change_times(Service, names):
        kept = ""
        if changed_at != loaded["service", slug]:
            kept = CHANGED
        elif slug in running:
            kept = "its instances report"
        elif slug in named_by:
            kept = f"the dependency {named_by[slug]} names it"
        items.append(SampleItem("service", slug, kept))
    return items


def _list_channels(loaded: SampleTimes) -> list[SampleItem]:
    names = [name for kind, name in loaded if kind == "channel"]
    return [
        SampleItem("channel", name, "" if changed_at == loaded["channel", name] else CHANGED)
        for name, changed_at in _read_change_times(Channel, names)
    ]


def _read_change_times(
    model: type[Service] | type[Channel], names: list[str]
) -> list[tuple[str, datetime]]:
    rows = model.objects.filter(pk__in=names).order_by("pk")
    return list(rows.values_list("pk", "changed_at"))
