"""Report sections about teams: what nobody owns, and changes of who may do what."""

import json
from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db.models import Q

from controlplane.accounts.teams import changes
from controlplane.core.actors import label_of
from controlplane.core.audit.models import AuditEntry
from controlplane.core.authority import read_teams
from controlplane.core.owned_resources import OwnedResource, find_paths, list_unowned
from controlplane.core.page_registry import REPORT_SECTIONS, IsOwned, ReportSection
from controlplane.core.team_filter import keep_owned
from switches.report.section_rows import (
    MAX_ROWS,
    build_section,
    pluralize,
    read_first_rows,
    reason_of,
)

PAGE = "/teams/unowned/"
AUTHORITY_CHANGES = Q(action__startswith="team.") | Q(action="authority.changed")


@REPORT_SECTIONS.add(130)
def unowned_section(
    _start: datetime, _end: datetime, _now: datetime, is_owned: IsOwned = None
) -> ReportSection | None:
    """List what no team owns now; only in the report about everything, if there are teams."""
    if is_owned is not None or not read_teams():
        return None
    found = list_unowned()
    paths = find_paths(found[:MAX_ROWS])
    counts = Counter(one.kind for one in found)
    words = ", ".join(
        f"{count:,} {kind.noun if count == 1 else kind.plural}" for kind, count in counts.items()
    )
    return build_section(
        "unowned",
        "Unowned",
        found[:MAX_ROWS],
        lambda one: paths.get(one.name, PAGE),
        total=len(found),
        tone="warn" if found else "good",
        headline=f"{len(found):,} without an owner",
        summary=f"No team owns {words}. Messages about them go only by routes, and any operator may"
        " start them again. Add patterns to teams.",
        empty="Teams own everything.",
        name=lambda one: one.name,
        kind=_name_kind,
    )


@REPORT_SECTIONS.add(125)
def authority_changes_section(
    start: datetime, end: datetime, _now: datetime, is_owned: IsOwned = None
) -> ReportSection | None:
    """List the changes of teams and of the rules of authority; none before the first team."""
    entries = AuditEntry.objects.filter(AUTHORITY_CHANGES, at__gte=start, at__lt=end)
    rows, counts = read_first_rows(keep_owned(entries, "target", is_owned).order_by("-id"))
    total = counts["total"]
    if not total and not read_teams():
        return None
    return build_section(
        "authority_changes",
        "Authority changes",
        rows,
        lambda entry: f"/audit/?target={entry.target}",
        total=total,
        tone="warn" if total else "good",
        headline=f"{pluralize(total, 'change')} of authority",
        summary=f"{pluralize(total, 'change')} of who may do what. Check that you expected each.",
        empty="Nobody changed who may do what.",
        about="target",
        change=describe_change,
        by=lambda entry: label_of(entry.actor_type, entry.actor_name),
        at="at",
        reason=reason_of,
    )


def describe_change(entry: AuditEntry) -> str:
    """Return an audited change of a team or a rule in words, such as `add kim (lead)`."""
    stored = json.loads(entry.before), json.loads(entry.after)
    if entry.action == "authority.changed":
        return " → ".join(_describe_rule(each) for each in stored)
    before, after = (_flatten(each) for each in stored)
    phrases = changes.list_phrases(changes.compare(before, {**after, "members": _roles(after)}))
    word = {"team.created": "created", "team.deleted": "deleted"}.get(entry.action)
    return "; ".join([*([word] if word else []), *phrases]) or "name or description changed"


def _flatten(document: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a team's document in which all members count as added by hand."""
    document = {**changes.EMPTY, **(document or {})}
    members = {name: {**entry, "source": "hand"} for name, entry in document["members"].items()}
    return {**document, "members": members}


def _roles(document: Mapping[str, Any]) -> dict[str, str]:
    return {name: entry["role"] for name, entry in document["members"].items()}


def _describe_rule(rule: Mapping[str, Any] | None) -> str:
    return f"{rule['relation']}, {rule['role']}" if rule else "the default rule"


def _name_kind(one: OwnedResource) -> str:
    return one.kind.noun
