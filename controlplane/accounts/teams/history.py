"""People and tokens who could do an action on a resource in a period, from the audit trail alone.

The entries say all that a decision depends on: roles and activity of people, documents of teams,
rules, tokens, and permissions that an owner granted for an hour.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

import orjson
from django.db.models import QuerySet

from controlplane.core.actions import Action
from controlplane.core.audit import services as audit
from controlplane.core.audit.models import AuditEntry
from controlplane.core.authority import AccessHistory, PastHolder, PastRule, Period

from .grants import GRANT_LIFETIME
from .past_state import HANDED_OVER, REVOKED, RULE_CHANGED, AuthorityEntry, Holders, PastState

WHOLE = ("user.created", "user.changed", "team.created", "team.changed", "team.deleted")
"""Actions whose entries have the whole state of their target, so that the last one says it."""
TOKENS = ("token.created", "token.changed", HANDED_OVER, "token.rotated", REVOKED)
"""Actions whose entries have the fields of a token that changed."""
GRANTED, ASKED = "approval.approved", "approval.requested"


@dataclass
class Spans:
    """The periods of those who may do something, by kind, name and reason."""

    found: dict[tuple[str, str, str], list[Period]] = field(default_factory=dict)
    _open: dict[tuple[str, str], tuple[str, datetime | None, datetime]] = field(
        default_factory=dict
    )

    def update(self, holders: Holders, at: datetime) -> None:
        """Begin and end periods, so that from `at` on these may do it."""
        for key, (because, ends, start) in list(self._open.items()):
            if holders.get(key) != (because, ends):
                del self._open[key]
                self.add(*key, because, Period(start, min(at, ends or at)))
        for key, (because, ends) in holders.items():
            self._open.setdefault(key, (because, ends, at))

    def add(self, kind: str, name: str, because: str, period: Period) -> None:
        """Add a period, as part of the last one if that ends when it starts."""
        found = self.found.setdefault((kind, name, because), [])
        if found and found[-1].end == period.start:
            period = Period(found.pop().start, period.end)
        found.append(period)


def read_history(action: Action, resource: str, period: Period) -> AccessHistory:
    """Return who could do the action on the resource in the period.

    See :func:`controlplane.core.authority.read_history`.
    """
    state, spans = PastState(action, resource), Spans()
    first = audit.find_beginning()
    begin = min(max(first or period.end, period.start), period.end)  # Nothing is known before.
    for change in _read_before(begin):
        state.apply(change)
    rules: list[PastRule] = []
    grants = list(_read_grants(action, resource, period))
    moments = [(begin, []), *_group_by_time(_read_within(Period(begin, period.end)))]
    ends = [*(at for at, _changes in moments[1:]), period.end]
    for (start, changes), end in zip(moments, ends, strict=True):
        for change in changes:
            state.apply(change)
        if start < end:
            _extend_rules(rules, state.describe_rule(Period(start, end)))
            spans.update(state.find_holders(start), start)
            _add_grants(spans, grants, state, Period(start, end))
    spans.update({}, period.end)
    holders = (PastHolder(*key, tuple(found)) for key, found in spans.found.items())
    ordered = sorted(holders, key=lambda one: (one.kind != "user", one.name, one.periods[0].start))
    return AccessHistory(period, tuple(rules), tuple(ordered), first)


def _add_grants(
    spans: Spans, grants: Iterable[tuple[str, Period]], state: PastState, span: Period
) -> None:
    """Add the parts of the granted permissions that counted in a period without changes."""
    for name, given in grants:
        start, end = max(given.start, span.start), min(given.end, span.end)
        if start < end and state.may_use_grant(name):
            spans.add("user", name, "granted on request, for an hour", Period(start, end))


def _extend_rules(rules: list[PastRule], rule: PastRule) -> None:
    last = rules[-1] if rules else None
    if last and (last.owner, last.requirement) == (rule.owner, rule.requirement):
        span = Period(last.period.start, rule.period.end)
        rules[-1] = PastRule(span, last.owner, last.requirement)
    else:
        rules.append(rule)


def _read_before(start: datetime) -> Iterator[AuthorityEntry]:
    """Return the last entry before `start` of each target, and all those of tokens."""
    earlier = AuditEntry.objects.filter(at__lt=start)
    last = earlier.order_by("target", "-id").distinct("target")
    yield from _read_changes(last.filter(action__in=WHOLE))
    yield from _read_changes(last.filter(action=RULE_CHANGED))
    yield from _read_changes(earlier.filter(action__in=TOKENS).order_by("id"))


def _read_within(period: Period) -> Iterator[AuthorityEntry]:
    found = AuditEntry.objects.filter(
        action__in=[*WHOLE, RULE_CHANGED, *TOKENS], at__gte=period.start, at__lt=period.end
    )
    return _read_changes(found.order_by("id"))


def _read_changes(entries: QuerySet[AuditEntry]) -> Iterator[AuthorityEntry]:
    for at, action, target, after in entries.values_list("at", "action", "target", "after"):
        yield AuthorityEntry(at, action, target, orjson.loads(after))


def _group_by_time(
    changes: Iterable[AuthorityEntry],
) -> list[tuple[datetime, list[AuthorityEntry]]]:
    """Return the changes by time; one that began before an earlier entry counts from that entry."""
    found: list[tuple[datetime, list[AuthorityEntry]]] = []
    for change in changes:
        if found and change.at <= found[-1][0]:
            found[-1][1].append(change)
        else:
            found.append((change.at, [change]))
    return found


def _read_grants(action: Action, resource: str, period: Period) -> Iterator[tuple[str, Period]]:
    """Return the people whose request was approved, and until when that counted."""
    approved = AuditEntry.objects.filter(
        action=GRANTED,
        target=resource,
        at__gte=period.start - GRANT_LIFETIME,
        at__lt=period.end,
    )
    for change in _read_changes(approved.order_by("id")):
        if change.after.get("kind") != "grant":
            continue
        asked = AuditEntry.objects.filter(action=ASKED, target=resource, at__lte=change.at)
        for after in asked.order_by("-id").values_list("after", flat=True):
            request = orjson.loads(after)
            if request["approval"] == change.after["approval"]:
                if request.get("action") == action:
                    start, end = max(change.at, period.start), change.at + GRANT_LIFETIME
                    # A token of the person may have asked last, by an edit of the reason.
                    yield request["person"], Period(start, min(end, period.end))
                break
