"""Rules in force, without the approval that put them there."""

from typing import Any

from controlplane.core.clock import db_now
from switches.models import Rule


def in_force(kind: str, *switches: str, name: str = "", n: int | None = None) -> Rule:
    """The rule as if somebody had approved it; it goes by its kind unless it is named."""
    now = db_now()
    fields: dict[str, Any] = {"name": name or kind, "kind": kind, "switches": list(switches)}
    return Rule.objects.create(**fields, n=n, created_at=now, created_by="user:ada", changed_at=now)


WHY = "both regions double charge, INC-4411"


def glass(*rules: str, reason: str = WHY) -> dict[str, Any]:
    """`break_glass` that names these rules."""
    return {"rule": rules[0] if len(rules) == 1 else list(rules), "reason": reason}
