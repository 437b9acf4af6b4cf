"""Validation of the fields of a team, without regard to other teams."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from controlplane.accounts.models.teams import MAX_PATTERN_LENGTH, SLUG, Membership
from controlplane.core import json_values, ownership, reasons
from controlplane.core.authority import MINE, UNOWNED
from controlplane.core.errors import InvalidInput
from controlplane.core.json_values import Errors, add_error

MAX_LENGTHS = {
    "name": 80, "description": 300, "runbook_url": 500, "member_group": 255, "lead_group": 255,
}  # fmt: skip
FIELDS = (*MAX_LENGTHS, "parent", "members", "owns")
RESERVED = frozenset({MINE, UNOWNED, "new", "authority", "all", "none", "sign"})
"""Slugs that pages and filters use for something else."""

REASON_ADVICE = "The approver reads it."
MAX_MEMBERS = 2000
MAX_PATTERNS = 500
ROLES: Sequence[str] = tuple(Membership.TeamRole.values)


def check_slug(slug: str) -> None:
    """Raise :class:`InvalidInput` unless a team may have this slug."""
    problem = ""
    if not re.fullmatch(SLUG, slug):
        problem = (
            "Use 1 to 40 lower-case letters, digits and hyphens, such as payments or data-platform."
        )
    elif slug in RESERVED:
        problem = f"{slug} is reserved. Choose another one."
    if problem:
        raise InvalidInput({"slug": [problem]})


def require_reason(reason: str) -> None:
    """Raise :class:`InvalidInput` unless this is a reason for a change that a person approves."""
    if problems := reasons.find_text_problems(reason, called="reason", advice=REASON_ADVICE):
        raise InvalidInput({"reason": problems})


def check_fields(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given fields of a team in their stored form; raise :class:`InvalidInput`.

    `members` maps user names to a role in the team, `owns` lists patterns, `parent` is the slug of
    a team or None. Fields that are not given are not returned.
    """
    errors: Errors = {}
    json_values.refuse_unknown("", given, FIELDS, errors)
    found: dict[str, Any] = {
        name: unicodedata.normalize(
            "NFC", json_values.read_text(name, given[name], MAX_LENGTHS[name], errors)
        )
        for name in MAX_LENGTHS
        if name in given
    }
    for name in MAX_LENGTHS:
        if "\n" in found.get(name, ""):
            add_error(errors, name, "Must be on one line.")
    if found.get("name") == "":
        add_error(errors, "name", "Enter a name, such as Payments.")
    json_values.check_web_url("runbook_url", found.get("runbook_url", ""), errors)
    if "parent" in given:
        found["parent"] = json_values.read_text("parent", given["parent"], 40, errors) or None
    if "members" in given:
        found["members"] = _read_members(given["members"], errors)
    if "owns" in given:
        found["owns"] = _read_patterns(given["owns"], errors)
    if errors:
        raise InvalidInput(errors)
    return found


def _read_members(value: Any, errors: Errors) -> dict[str, str]:
    if not isinstance(value, Mapping | None):
        add_error(errors, "members", "Must map user names to member or lead.")
        return {}
    if len(value or ()) > MAX_MEMBERS:
        add_error(errors, "members", f"At most {MAX_MEMBERS:,} people; use groups for more.")
        return {}
    found = {}
    for name, role in (value or {}).items():
        if role not in ROLES:
            add_error(errors, "members", f"{name}: must be one of {', '.join(ROLES)}.")
        else:
            found[unicodedata.normalize("NFKC", str(name))] = str(role)
    return dict(sorted(found.items()))


def _read_patterns(value: Any, errors: Errors) -> list[str]:
    if not isinstance(value, list | tuple | None):
        add_error(errors, "owns", "Must be a list of patterns, such as segment:finance*.")
        return []
    patterns = sorted({str(one).strip() for one in value or ()})
    if len(patterns) > MAX_PATTERNS:
        add_error(errors, "owns", f"At most {MAX_PATTERNS} patterns; use * to cover several.")
        return []
    for pattern in patterns:
        if len(pattern) > MAX_PATTERN_LENGTH:
            add_error(errors, "owns", f"{pattern[:40]}… is longer than {MAX_PATTERN_LENGTH}.")
        elif problem := ownership.find_problem(pattern):
            add_error(errors, "owns", problem)
    return patterns
