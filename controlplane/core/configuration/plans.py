"""What loading files changes, entry by entry."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from controlplane.core.audit.models import AuditEntry

CONSOLE = ("user", "token", "slack")
"""Types of actors whose changes were made by hand rather than by loading files."""
NEW, CHANGED, SAME, KEPT = "new", "changed", "same", "kept"
REASON = "config load"


@dataclass(frozen=True)
class Change:
    """What loading does with one entry, such as a service. `differences` are lines for people;
    `edited` says who had changed it by hand since, and when; empty if nobody had."""

    kind: str
    name: str
    outcome: str
    differences: tuple[str, ...] = ()
    edited: str = ""


@dataclass(frozen=True)
class Loaded:
    """What loading changed, or would. `told` are rows for the audit trail, to be written last;
    `elsewhere` names what is registered and stands in no file: it is left alone."""

    changes: tuple[Change, ...] = ()
    remarks: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()
    told: Sequence[Mapping[str, Any]] = field(default=(), repr=False)

    def count(self, outcome: str) -> int:
        return sum(change.outcome == outcome for change in self.changes)

    def __add__(self, other: "Loaded") -> "Loaded":
        return Loaded(
            self.changes + other.changes,
            self.remarks + other.remarks,
            self.elsewhere + other.elsewhere,
            (*self.told, *other.told),
        )


def edited_by_hand(actions: Sequence[str]) -> dict[str, str]:
    """Whatever people and programs changed last, by the target of its audit rows of these actions
    (`service.changed`), with who and when."""
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
