"""Rules in force, created without an approval."""

from typing import Any

from controlplane.core.clock import db_now
from switches.models import Rule


def create_rule(kind: str, *switches: str, name: str = "", n: int | None = None) -> Rule:
    """Create a rule as if approved; its name defaults to its kind."""
    now = db_now()
    fields: dict[str, Any] = {"name": name or kind, "kind": kind, "switches": list(switches)}
    return Rule.objects.create(**fields, n=n, created_at=now, created_by="user:ada", changed_at=now)


WHY = "both regions double charge, INC-4411"


def break_glass_naming(*rules: str, reason: str = WHY) -> dict[str, Any]:
    """Return a `break_glass` argument that names these rules."""
    return {"rule": rules[0] if len(rules) == 1 else list(rules), "reason": reason}
