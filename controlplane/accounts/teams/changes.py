"""Differences between a team's document and a requested one, as approval requests store them."""

from collections.abc import Iterable, Mapping
from typing import Any

from controlplane.accounts.models.teams import Membership
from controlplane.core import canonical

from .documents import Document

Diff = dict[str, list[Any]]
"""Changed fields with their values before and after.

`team` is the slug, None before a team exists or after its deletion. `members` holds only people
whose role changes, by user name; who is missing on a side is no member.
"""

OPEN_FIELDS = ("name", "description", "runbook_url")
"""Fields that say nothing about who may do what."""

EMPTY: Document = {
    "name": "", "description": "", "runbook_url": "", "parent": None, "member_group": "",
    "lead_group": "", "members": {}, "owns": [],
}  # fmt: skip
LABELS = {"member_group": "group of members", "lead_group": "group of leads"}
MAX_NAMED = 5


def compare(before: Document, wanted: Mapping[str, Any]) -> Diff:
    """Return how the validated fields `wanted` differ from a team's document.

    `members` of `wanted` are those by hand; members by a group stay.
    """
    diff: Diff = {}
    for field, after in wanted.items():
        present = before[field]
        if field == "members":
            present = list_manual_members(before)
            changed = {name for name in {*present, *after} if present.get(name) != after.get(name)}
            present, after = (
                {name: roles[name] for name in sorted(changed) if name in roles}
                for roles in (present, after)
            )
        if present != after:
            diff[field] = [present, after]
    return diff


def list_manual_members(document: Document) -> dict[str, str]:
    """Return the roles of the members who were added by hand, by user name."""
    return {
        name: entry["role"]
        for name, entry in document["members"].items()
        if entry["source"] == Membership.Source.HAND
    }


def get_revision(document: Document) -> str:
    """Return a digest of what people change in a team, to detect changes by somebody else."""
    return canonical.digest({**document, "members": list_manual_members(document)})


def split(diff: Diff) -> tuple[Diff, Diff]:
    """Return the part of a diff that needs no approval, and the rest."""
    if "team" in diff:
        return {}, diff
    fields = {field: pair for field, pair in diff.items() if field in OPEN_FIELDS}
    return fields, {field: pair for field, pair in diff.items() if field not in fields}


def is_outdated(document: Document, diff: Diff) -> bool:
    """Return True if the team no longer is as it was when the diff was made."""
    present = {
        **document,
        "members": {name: entry["role"] for name, entry in document["members"].items()},
    }
    for field, (before, after) in diff.items():
        if field == "team":
            continue
        if field == "members":
            names = {*before, *after}
            if {name: present[field].get(name) for name in names} != {
                name: before.get(name) for name in names
            }:
                return True
        elif present[field] != before:
            return True
    return False


def summarize(name: str, diff: Diff) -> str:
    """Return a sentence about a change of the team `name`, without a full stop."""
    if "team" in diff and diff["team"][0] is None:
        text = f"New team {name}"
    elif "team" in diff:
        text = f"Delete the team {name}"
    else:
        text = f"Change the team {name}"
    phrases = "; ".join(list_phrases(diff))
    text = f"{text}: {phrases}" if phrases else text
    return text if len(text) <= 300 else f"{text[:299]}…"


def list_phrases(diff: Diff) -> list[str]:
    """Return a phrase for each kind of change, such as `add kim (lead)`."""
    phrases = []
    if "members" in diff:
        before, after = diff["members"]
        added = [f"{name} ({role})" for name, role in after.items() if name not in before]
        changed = [
            f"{name} from {before[name]} to {role}"
            for name, role in after.items()
            if name in before
        ]
        removed = [name for name in before if name not in after]
        phrases += _phrase("add", added) + _phrase("change", changed) + _phrase("remove", removed)
    if "owns" in diff:
        old, new = (set(side) for side in diff["owns"])
        phrases += _phrase("own", sorted(new - old)) + _phrase("no longer own", sorted(old - new))
    if "parent" in diff:
        _, parent = diff["parent"]
        phrases.append(f"parent {parent}" if parent else "no parent")
    for field, label in LABELS.items():
        if field in diff:
            phrases.append(f"{label} {diff[field][1] or 'none'}")
    return phrases


def describe(diff: Mapping[str, Any]) -> dict[str, Any]:
    """Return a readable form of a diff, for the approvals page."""
    shown: dict[str, Any] = {}
    for field, value in diff.items():
        if field == "members":
            value = [
                ", ".join(f"{name} ({role})" for name, role in side.items()) or None
                for side in value
            ]
        elif field == "owns":
            old, new = value
            value = [
                ", ".join(one for one in old if one not in new) or None,
                ", ".join(one for one in new if one not in old) or None,
            ]
        shown[LABELS.get(field, field).replace("_", " ")] = value
    return shown


def _phrase(verb: str, names: Iterable[str]) -> list[str]:
    found = list(names)
    if not found:
        return []
    more = f" and {len(found) - MAX_NAMED} more" if len(found) > MAX_NAMED else ""
    return [f"{verb} {', '.join(found[:MAX_NAMED])}{more}"]
