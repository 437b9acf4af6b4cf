"""The changes that this app adds to the change feed: of overrides, policies and services."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from django.db.models import Q

from breakers import message_facts, names
from breakers.models import Dependency
from breakers.templatetags.breakers import MODES
from controlplane.core import durations
from controlplane.core.audit.change_feed import CHANGE_KINDS, RELATED_TARGETS, ChangeKind

PREFIX = "dependency:"
MAX_RELATED = 2000


def _dependency_path(target: str) -> str:
    caller, _, callee = target.removeprefix(PREFIX).partition(names.ARROW)
    return message_facts.dependency_path(caller, callee)


def _read_policy(target: str, _: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"name": names.format_name(target.removeprefix(PREFIX))}


def _read_override(target: str, document: Mapping[str, Any]) -> Mapping[str, Any]:
    begin, end = (datetime.fromisoformat(document[name]) for name in ("set_at", "expires_at"))
    return {
        **_read_policy(target, document),
        "mode": MODES[document["mode"]][0].lower(),
        "lasts": durations.format_readable(end - begin),
    }


CHANGE_KINDS.register(
    *(
        ChangeKind(f"override.{done}", icon, text, _dependency_path, _read_override)
        for done, icon, text in (
            ("set", "override", "{name} {mode} for {lasts}"),
            ("replaced", "override", "{name} {mode} for {lasts}"),
            ("removed", "undo", "{name} no longer {mode}"),
            ("expired", "undo", "{name} no longer {mode}: expired"),
        )
    ),
    ChangeKind(
        "override.undone", "undo", "{name}: override undone", _dependency_path, _read_policy
    ),
    *(
        ChangeKind(f"dependency.{done}", "edit", text, _dependency_path, _read_policy)
        for done, text in (
            ("registered", "{name} registered"),
            ("changed", "Policy of {name} changed"),
            ("removed", "{name} removed"),
        )
    ),
    *(
        ChangeKind(
            f"service.{done}",
            "edit",
            f"Service {{name}} {done}",
            lambda _: "/breakers/infrastructure/",
        )
        for done in ("registered", "changed")
    ),
)


@RELATED_TARGETS.add()
def find_related_dependencies(services: Collection[str]) -> Collection[str]:
    """Return the services, their dependencies and those of the services that they call."""
    callees = Dependency.objects.filter(caller__in=services).values("callee")
    rows = Dependency.objects.filter(
        Q(caller__in=services) | Q(callee__in=services) | Q(caller__in=callees)
    )
    pairs = rows.values_list("caller", "callee")[:MAX_RELATED]
    found = {f"{PREFIX}{names.dependency_name(*pair)}" for pair in pairs}
    return found.union(f"service:{service}" for service in services)
