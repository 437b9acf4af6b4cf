"""The changes in the hour before an event, and the alerts that began in the hour after a change.

Apps register in modules `change_kinds` which audit actions are changes, which audit targets concern
a service, and how to list alerts.
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Generic, NamedTuple, TypeVar

from controlplane.core.actors import label_of
from controlplane.core.audit.models import AuditEntry
from controlplane.core.registry import FunctionRegistry, KindRegistry
from controlplane.core.sql import fetch_all

PERIOD = timedelta(hours=1)
MAX_RELATED = 20
MAX_OTHERS = 20

# Entries of one actor, action and moment are one change: loading a folder writes thousands.
_CHANGES = f"""
    SELECT at, actor_type, actor_name, action, target, reason, before, after, entries,
           related, total
    FROM (
        SELECT max(id) AS id, count(*) AS entries, related,
               row_number() OVER ranked AS place, count(*) OVER (PARTITION BY related) AS total
        FROM (
            SELECT id, at, actor_type, actor_name, action, target = ANY(%(targets)s) AS related
            FROM {AuditEntry._meta.db_table}
            WHERE at >= %(since)s AND at <= %(until)s AND action = ANY(%(actions)s)
        ) entry
        GROUP BY related, at, actor_type, actor_name, action
        WINDOW ranked AS (PARTITION BY related ORDER BY at DESC, max(id) DESC)
    ) change
    JOIN {AuditEntry._meta.db_table} newest USING (id)
    WHERE place <= CASE WHEN related THEN %(related)s ELSE %(others)s END
    ORDER BY related DESC, place
"""  # noqa: S608 - the table's own name


def _read_fields(target: str, document: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**document, "target": target, "name": target.partition(":")[2]}


# Counts changes as `_CHANGES` does, for each of several times.
_SUMMARIES = f"""
    SELECT found.total, e.at, e.actor_type, e.actor_name, e.action, e.target, e.reason, e.before,
           e.after, 1
    FROM unnest(%(times)s::timestamptz[]) WITH ORDINALITY AS wanted (at, place)
    CROSS JOIN LATERAL (
        SELECT count(DISTINCT (at, actor_type, actor_name, action)) AS total, max(id) AS last
        FROM {AuditEntry._meta.db_table} entry
        WHERE entry.at >= wanted.at - %(period)s AND entry.at <= wanted.at
          AND action = ANY(%(actions)s)
    ) found
    LEFT JOIN {AuditEntry._meta.db_table} e ON e.id = found.last
    ORDER BY wanted.place
"""  # noqa: S608 - the table's own name


@dataclass(frozen=True)
class ChangeKind:
    """An audit action that changes what services do, such as `override.set`.

    `text` is a format of a phrase, such as `{target} engaged`. Its fields are returned by
    `read_fields`, given an entry's target and its document (`after`, else `before`); by default
    they are those of the document, `target`, and `name`, the target without its kind. `path`
    returns the page of a target.
    """

    name: str
    icon: str
    text: str
    path: Callable[[str], str]
    read_fields: Callable[[str, Mapping[str, Any]], Mapping[str, Any]] = _read_fields

    def describe(self, target: str, document: Mapping[str, Any]) -> str:
        """Return the phrase; the action and target if the entry lacks a field of the format."""
        try:
            return self.text.format_map(self.read_fields(target, document))
        except (KeyError, TypeError, ValueError):  # An entry of another release.
            return f"{target}: {self.name}"


CHANGE_KINDS = KindRegistry[ChangeKind]("change_kinds")


@dataclass(frozen=True)
class Change:
    """A change by an actor; `more` is the number of further targets that it changed alike."""

    at: datetime
    by: str
    icon: str
    text: str
    reason: str
    path: str
    more: int


@dataclass(frozen=True)
class ChangeSummary:
    """The number of changes in the hour before an event, and the phrase of the last one."""

    total: int
    last: str


class AlertStart(NamedTuple):
    """An alert that began at `at`; `ended_at` is None while it is open."""

    at: datetime
    ended_at: datetime | None
    severity: str
    text: str
    path: str


T = TypeVar("T", Change, AlertStart)


@dataclass(frozen=True)
class Feed(Generic[T]):
    """Changes or alerts between two times, newest first: those related to the subject, and others.

    The totals also count those that aren't listed.
    """

    since: datetime
    until: datetime
    related: Sequence[T]
    others: Sequence[T]
    related_total: int
    others_total: int

    @property
    def total(self) -> int:
        return self.related_total + self.others_total

    @property
    def unlisted(self) -> int:
        return self.total - len(self.related) - len(self.others)


FindTargets = Callable[[Collection[str]], Collection[str]]
"""Function of services that returns the audit targets whose changes concern them."""
RELATED_TARGETS = FunctionRegistry[FindTargets]("change_kinds")

ReadAlerts = Callable[[datetime, datetime, Collection[str], Collection[str]], Feed[AlertStart]]
"""Function of two times, services and subjects that returns the alerts that began between them.

Alerts about these services or subjects are the related ones.
"""
ALERT_READERS = FunctionRegistry[ReadAlerts]("change_kinds")


def list_changes_before(
    at: datetime, *, services: Collection[str] = (), targets: Collection[str] = ()
) -> Feed[Change]:
    """Return the changes in the hour before `at`.

    Those of `targets`, and of the targets that concern `services`, are the related ones.
    """
    wanted = set(targets)
    if named := [service for service in services if service]:
        wanted.update(*(find(named) for find in RELATED_TARGETS.functions()))
    values: dict[str, Any] = {
        "since": at - PERIOD,
        "until": at,
        "actions": list(CHANGE_KINDS),
        "targets": list(wanted),
        "related": MAX_RELATED,
        "others": MAX_OTHERS,
    }
    listed: dict[bool, list[Change]] = {True: [], False: []}
    totals = {True: 0, False: 0}
    for *columns, is_related, total in fetch_all(_CHANGES, values):
        listed[is_related].append(_build_change(*columns))
        totals[is_related] = total
    return Feed(at - PERIOD, at, listed[True], listed[False], totals[True], totals[False])


def summarize_changes_before(times: Sequence[datetime]) -> list[ChangeSummary]:
    """Return a summary of all changes in the hour before each time. Makes one query."""
    if not times:
        return []
    values: dict[str, Any] = {
        "times": list(times),
        "period": PERIOD,
        "actions": list(CHANGE_KINDS),
    }
    return [
        ChangeSummary(total, _build_change(*columns).text if total else "")
        for total, *columns in fetch_all(_SUMMARIES, values)
    ]


def list_alerts_after(
    at: datetime, *, services: Collection[str] = (), subjects: Collection[str] = ()
) -> Feed[AlertStart]:
    """Return the alerts that began in the hour after `at`, as by :data:`ReadAlerts`."""
    (read,) = ALERT_READERS.functions()
    return read(at, at + PERIOD, services, subjects)


def _build_change(
    at: datetime,
    actor_type: str,
    actor_name: str,
    action: str,
    target: str,
    reason: str,
    before: str,
    after: str,
    entries: int,
) -> Change:
    kind = CHANGE_KINDS[action]
    document = json.loads(after) or json.loads(before)
    return Change(
        at=at,
        by=label_of(actor_type, actor_name),
        icon=kind.icon,
        text=kind.describe(target, document if isinstance(document, dict) else {}),
        reason=reason,
        path=kind.path(target),
        more=entries - 1,
    )
