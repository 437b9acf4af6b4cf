"""The configuration file `rules.yaml`: safety rules by name.

Every change waits for a second person, as on the page of the rules.
"""

from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from controlplane.core import json_values
from controlplane.core.approvals.models import Approval
from controlplane.core.configuration import schemas
from controlplane.core.configuration.comparison import Comparison, drop_empty
from controlplane.core.configuration.files import read_entry_file
from controlplane.core.configuration.readers import REASON, Document, Loaded, LoadOptions
from controlplane.core.configuration.schemas import Schema
from controlplane.core.configuration.services import find_manual_edits
from controlplane.core.errors import InvalidInput
from controlplane.core.json_values import Errors
from switches.models import Rule
from switches.rules import evaluation, guard, proposal, services

FILE, PART = "rules.yaml", "rules"
ACTIONS = ("rule.created", "rule.changed", "rule.removed")
FIELDS = ("kind", "switches", "n")
NOTE = "needs a second person's approval"
MAX_CHANGES = 100
"""Most changes of one load, which holds the lock that engaging needs for about 15 ms each."""


def load_file(texts: Mapping[str, str], options: LoadOptions) -> Loaded:
    """Request the approval of each new or changed rule of the file; rules don't change here.

    An equal request that is pending stays as it is. Raise :class:`Conflict` if someone else's
    change of a rule is pending. A dry run takes no lock, and names pending requests in the notes.
    """
    entries, errors = read_entry_file(FILE, texts[FILE], PART)
    rows = {row.name: row for row in Rule.objects.order_by("name")}
    _refuse_similar_names((*rows, *entries), entries, errors)
    present = {name: guard.to_safety_rule(row).as_dict() for name, row in rows.items()}
    edited = find_manual_edits(ACTIONS)
    found = Comparison(
        "rule", FILE, present, options, edited, errors, audit_prefix="rule:", note=NOTE
    ).compare_all(entries, _check_entry)
    if len(found.writes) > MAX_CHANGES:
        problem = f"At most {MAX_CHANGES} rules can be new or changed. Load the others afterwards."
        raise InvalidInput({f"{FILE}: {PART}": [problem]})
    names = [one.name for one in found.writes]
    if options.dry_run:
        notes = _describe_pending(names, options.now)
        found.changes = [replace(one, note=notes.get(one.name, one.note)) for one in found.changes]
        return found.build_result()
    requests: dict[str, int] = {}
    for one in found.writes:
        row = rows.get(one.name)
        requests[one.name] = _request(row.pk if row else None, one.after, options)
    found.changes = [replace(one, approval=requests.get(one.name, 0)) for one in found.changes]
    return found.build_result()


def export_documents() -> dict[str, Document]:
    rules = [rule.as_dict() for rule in guard.list_rules()]
    return {
        FILE: {PART: {rule["name"]: drop_empty({f: rule[f] for f in FIELDS}) for rule in rules}}
    }


def build_schema() -> Schema:
    rule = schemas.fields(
        {
            "kind": schemas.choice(evaluation.KINDS),
            "switches": schemas.list_of(
                schemas.text(help="segment:finance, segment:*, feature:checkout-*, or *."),
                proposal.MAX_PATTERNS,
                least=1,
            ),
            "n": schemas.whole(1, proposal.MAX_ENGAGED, "Only for at_most."),
        },
        ("kind", "switches"),
    )
    named = {PART: schemas.entries(rule, f"^.{{1,{proposal.MAX_NAME_LENGTH}}}$", "Rules by name.")}
    return schemas.file_schema("Safety rules", named, "Each change needs a second person.")


def _refuse_similar_names(names: Iterable[str], entries: Container[str], errors: Errors) -> None:
    """Add an error for each entry whose name differs in case only from one before in `names`."""
    first_names: dict[str, str] = {}
    for name in names:
        first = first_names.setdefault(name.lower(), name)
        if first != name and name in entries:
            problem = f"“{first}” and “{name}” differ in case only. Rename or remove one of them."
            json_values.add_error(errors, f"{FILE}: {name}: name", problem)


def _check_entry(name: str, fields: Mapping[str, Any]) -> Document:
    errors: Errors = {}
    json_values.refuse_unknown("", fields, FIELDS, errors)
    switches = fields.get("switches")
    if switches is not None and not isinstance(switches, list):
        json_values.add_error(errors, "switches", "Must be a list of switches and patterns.")
    if errors:
        raise InvalidInput(errors)
    rule = proposal.validate_proposal({"name": name, **fields})
    if rule.name != name:
        raise InvalidInput({"name": ["Leave out spaces at the ends; use composed characters."]})
    return rule.as_dict()


def _describe_pending(names: Iterable[str], now: datetime) -> dict[str, str]:
    """Return the note of each of these rules of which a change is pending."""
    pending = Approval.objects.filter(
        kind=Approval.Kind.RULE_CHANGE,
        state=Approval.State.PENDING,
        target__in=[f"rule:{name}" for name in names],
        expires_at__gt=now,
    )
    return {
        one.target.removeprefix("rule:"): f"{NOTE}; a change requested by {one.requested_by} is"
        f" pending (approval {one.pk})"
        for one in pending
    }


def _request(rule_id: int | None, fields: Document, options: LoadOptions) -> int:
    """Request a rule's change, and return the id of the approval."""
    try:
        found = services.request_change(
            rule_id=rule_id,
            fields=fields,
            reason=REASON,
            actor=options.actor,
            now=options.now,
        )
    except InvalidInput as error:
        place = f"{FILE}: {fields['name']}"
        raise InvalidInput(
            {f"{place}: {key}": text for key, text in error.errors.items()}
        ) from error
    return found.approval.pk
