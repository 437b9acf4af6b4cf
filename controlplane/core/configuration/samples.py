"""The sample configuration: the entries of the shipped folder that nobody has changed yet."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime

from django.db import transaction

from controlplane.core import provision, reasons
from controlplane.core.actors import Actor
from controlplane.core.audit import services as audit
from controlplane.core.configuration.models import SampleEntry
from controlplane.core.configuration.readers import (
    READERS,
    Loaded,
    Reader,
    SampleItem,
    SampleTimes,
)
from controlplane.core.configuration.services import load_shipped
from controlplane.core.errors import InvalidInput
from controlplane.core.roles import Power

ADVICE = "Enter a reason, for example “our own services are registered now”."
AUDIT_TARGET = "configuration:sample"


def list_items() -> list[SampleItem]:
    """Return the entries of the sample configuration that still exist."""
    loaded = _read_times()
    return [
        item for reader in READERS.values() for item in reader.list_samples(_select(reader, loaded))
    ]


def has_entries() -> bool:
    return SampleEntry.objects.exists()


def read_loading_times(kind: str) -> Mapping[str, datetime]:
    """Return the times at which entries of a kind were loaded, by name."""
    return dict(SampleEntry.objects.filter(kind=kind).values_list("name", "loaded_at"))


def find_sample_names(kind: str, changed_at: Mapping[str, datetime]) -> frozenset[str]:
    """Return the names of samples among entries of a kind, given the time of their last change."""
    rows = SampleEntry.objects.filter(kind=kind, name__in=changed_at)
    found = rows.values_list("name", "loaded_at")
    return frozenset(name for name, loaded_at in found if changed_at[name] == loaded_at)


@transaction.atomic
def clear(*, reason: str, actor: Actor, now: datetime) -> list[SampleItem]:
    """Remove the samples that are not in use; what is kept counts as the user's own from now on.

    Return the items removed and kept, none if there were no samples. Raise :class:`Forbidden` or
    :class:`InvalidInput`.
    """
    _require_admin(actor)
    if problems := reasons.find_text_problems(reason, called="reason", advice=ADVICE):
        raise InvalidInput({"reason": problems})
    provision.take_lock()
    loaded = _read_times()
    if not loaded:
        return []
    items, audit_rows = [], []
    for reader in READERS.values():
        found, rows = reader.remove_samples(_select(reader, loaded), now=now)
        items += found
        audit_rows += rows
    SampleEntry.objects.all().delete()
    summary = {
        "action": "samples.cleared",
        "target": AUDIT_TARGET,
        "before": {"removed": [f"{one.kind} {one.name}" for one in items if not one.kept]},
        "after": {"kept": {f"{one.kind} {one.name}": one.kept for one in items if one.kept}},
    }
    common = {"reason": reason.strip(), "actor": actor, "now": now}
    audit.record_many([{**row, **common} for row in (*audit_rows, summary)])
    return items


@transaction.atomic
def load(*, actor: Actor, now: datetime) -> Loaded:
    """Load what is missing of the sample configuration; raise :class:`Forbidden`."""
    _require_admin(actor)
    provision.take_lock()
    return load_shipped(actor=actor, now=now)


def describe_counts(items: Iterable[SampleItem]) -> str:
    """Return the number of items of each kind, such as `21 dependencies, 1 service and 4 SLOs`."""
    counts = Counter(item.kind for item in items)
    plurals = {kind: plural for one in READERS.values() for kind, plural in one.kinds.items()}
    parts = [
        f"1 {kind}" if count == 1 else f"{count:,} {plurals[kind]}"
        for kind, count in counts.items()
    ]
    return " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))


def _require_admin(actor: Actor) -> None:
    if actor.type != "system":
        actor.require_power(Power.ADMINISTER)


def _read_times() -> SampleTimes:
    rows = SampleEntry.objects.values_list("kind", "name", "loaded_at")
    return {(kind, name): loaded_at for kind, name, loaded_at in rows}


def _select(reader: Reader, loaded: SampleTimes) -> SampleTimes:
    return {key: at for key, at in loaded.items() if key[0] in reader.kinds}
