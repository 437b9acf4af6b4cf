"""Results of loading configuration files, by entry."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from controlplane.core.audit.models import AuditEntry

CONSOLE = ("user", "token", "slack")
"""Actor types whose changes count as manual."""
NEW, CHANGED, SAME, KEPT = "new", "changed", "same", "kept"
REASON = "config load"


@dataclass(frozen=True)
class EntryChange:
    """The outcome of loading one entry, such as a service.

    `differences` are readable descriptions of the changes. `edited` is the author and time of a
    manual change since the last load, or "" if there is none.
    """

    kind: str
    name: str
    outcome: str
    differences: tuple[str, ...] = ()
    edited: str = ""


@dataclass(frozen=True)
class Loaded:
    """The actual or planned result of a load.

    `audit_rows` are rows for the audit trail, written last. `elsewhere` are the names of entries in
    the database that no file mentions; loading leaves them unchanged.
    """

    changes: tuple[EntryChange, ...] = ()
    remarks: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()
    audit_rows: Sequence[Mapping[str, Any]] = field(default=(), repr=False)

    def count(self, outcome: str) -> int:
        return sum(change.outcome == outcome for change in self.changes)

    def __add__(self, other: "Loaded") -> "Loaded":
        return Loaded(
            self.changes + other.changes,
            self.remarks + other.remarks,
            self.elsewhere + other.elsewhere,
            (*self.audit_rows, *other.audit_rows),
        )


def find_manual_edits(actions: Sequence[str]) -> dict[str, str]:
    """Return the author and time of the last manual change, by audit target.

    `actions` are the audit actions of changes, such as `service.changed`.
    """
    last = (
        AuditEntry.objects.filter(action__in=actions)
        .order_by("target", "-id")
        .distinct("target")
        .values_list("target", "actor_type", "actor_name", "action", "at")
    )
    return {
        target: f"{action.partition('.')[2]} by {kind}:{name} on {at:%Y-%m-%d %H:%M} UTC"
        for target, kind, name, action, at in last
        if kind in CONSOLE
    }
