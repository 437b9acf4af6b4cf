"""Loading of `slo.yaml`, and the plan of its changes."""

from datetime import datetime
from typing import Any

from controlplane.core.actors import Actor
from controlplane.core.configuration.plans import (
    CHANGED,
    KEPT,
    NEW,
    REASON,
    SAME,
    EntryChange,
    Loaded,
    find_manual_edits,
)
from slo.models import Slo

from . import descriptions, documents, services, slo_file
from .permissions import require_admin

ACTIONS = ("slo.created", "slo.changed", "slo.removed")


def load_slo_file(
    texts: dict[str, str], *, keep_edited: bool, dry_run: bool, actor: Actor, now: datetime
) -> Loaded:
    """Create or change the SLOs of the file; others are left alone.

    With `keep_edited`, SLOs that were edited by hand after loading stay as they are. Raise
    :class:`InvalidInput`, which names file and key, or :class:`Conflict` if there is no room.
    """
    require_admin(actor)
    parsed = slo_file.parse_slo_file(texts[slo_file.FILE])
    known = {slo.name: documents.to_document(slo) for slo in Slo.objects.present()}
    edited = find_manual_edits(ACTIONS)
    changes, audit_rows = [], []
    for name in sorted(parsed.slos):
        before, after = known.get(name), parsed.slos[name]
        by_hand = edited.get(services.audit_target(name), "")
        if by_hand and keep_edited:
            changes.append(EntryChange("SLO", name, KEPT, edited=by_hand))
            continue
        changes.append(_change(name, before, after, by_hand))
        if before != after and not dry_run:
            _, row = services.write_slo(name, after, now)
            audit_rows += [{**row, "reason": REASON}] if row else []
    elsewhere = tuple(f"SLO {name}" for name in sorted(known.keys() - parsed.slos.keys()))
    return Loaded(tuple(changes), parsed.remarks, elsewhere, audit_rows)


def has_no_slos() -> bool:
    """Return whether there never was an SLO."""
    return not Slo.objects.exists()


def _change(name: str, before: Any, after: documents.Document, by_hand: str) -> EntryChange:
    if before == after:
        return EntryChange("SLO", name, SAME)
    lines = tuple(
        f"{one.field}: {_line(one.before)} → {_line(one.after)}"
        for one in descriptions.describe_changes(before, after)
    )
    return EntryChange("SLO", name, NEW if before is None else CHANGED, lines, by_hand)


def _line(text: str) -> str:
    return text.replace("\n", "; ") or "–"
