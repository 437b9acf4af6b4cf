"""Grouping of alerts that have one cause. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

WITHIN = timedelta(minutes=1)
"""Longest time between the first alert of a group and its last one."""
SEPARATOR = "->"


@dataclass(frozen=True)
class GroupableAlert:
    """An alert with its links: the services, switches and changes it may share with others.

    `group` is the id of the first alert of its group, None if it is in none yet.
    """

    id: int
    opened_at: datetime
    links: frozenset[str]
    group: int | None = None


def assign_groups(alerts: Iterable[GroupableAlert]) -> dict[int, int]:
    """Return the group of each alert that is in none yet, by alert id.

    Alerts that share a link, or are linked by others, form a group if they opened within a minute
    of its first alert. An alert that is linked to several groups joins the oldest; groups never
    merge.
    """
    ordered = sorted(alerts, key=lambda one: (one.opened_at, one.id))
    new = [one for one in ordered if one.group is None]
    groups: dict[int, list[GroupableAlert]] = {}
    for one in ordered:
        if one.group is not None:
            groups.setdefault(one.group, []).append(one)
    assigned: dict[int, int] = {}
    for members in _connect(new):
        group = _find_group(members, groups)
        groups.setdefault(group, []).extend(members)
        assigned.update((one.id, group) for one in members)
    return assigned


def link_alert(
    *, service: str, subject: str, switches: Iterable[str], changed: Iterable[str]
) -> frozenset[str]:
    """Return the links of an alert.

    `switches` are the ids of the switches that it is about or may trip. `changed` are dependencies
    (`core->oracle`) that were just overridden; both of their services share the change.
    """
    services = {name for name in (service, *_split_dependency(subject)) if name}
    shared = (one for one in changed if services & set(_split_dependency(one)))
    return frozenset(
        (
            *(f"service:{name}" for name in services),
            *(f"switch:{one}" for one in switches),
            *(f"change:{one}" for one in shared),
        )
    )


def _split_dependency(name: str) -> Sequence[str]:
    return name.split(SEPARATOR) if SEPARATOR in name else ()


def _connect(ordered: Sequence[GroupableAlert]) -> list[list[GroupableAlert]]:
    """Return the alerts in parts that share links and begin within a minute, oldest first."""
    parts: list[list[GroupableAlert]] = []
    for one in ordered:
        near = [part for part in parts if one.opened_at - part[0].opened_at <= WITHIN]
        linked = [part for part in near if any(one.links & each.links for each in part)]
        merged = [each for part in linked for each in part]
        parts = [part for part in parts if part not in linked]
        parts.append([*sorted(merged, key=lambda each: (each.opened_at, each.id)), one])
    return sorted(parts, key=lambda part: (part[0].opened_at, part[0].id))


def _find_group(members: Sequence[GroupableAlert], groups: dict[int, list[GroupableAlert]]) -> int:
    links = frozenset().union(*(one.links for one in members))
    last = max(one.opened_at for one in members)
    for group, present in sorted(groups.items()):
        begun = min(one.opened_at for one in present)
        if last - begun <= WITHIN and any(one.links & links for one in present):
            return group
    return members[0].id
