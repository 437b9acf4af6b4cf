"""The configuration file `trips.yaml`: trip policies, in the order in which they are tried."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from controlplane.core import json_values
from controlplane.core.configuration import schemas
from controlplane.core.configuration.comparison import Comparison, compare_and_write
from controlplane.core.configuration.files import read_document, read_list
from controlplane.core.configuration.readers import (
    CHANGED,
    Document,
    EntryChange,
    Loaded,
    LoadOptions,
)
from controlplane.core.configuration.schemas import Schema
from controlplane.core.configuration.services import find_manual_edits
from controlplane.core.errors import InvalidInput
from controlplane.core.json_values import Errors
from switches import publication
from switches.models import TripPolicy
from switches.scopes import SCOPES

from . import history, policies

FILE, PART = "trips.yaml", "policies"
ACTION = "trip_policy.changed"


def load_file(texts: Mapping[str, str], options: LoadOptions) -> Loaded:
    """Add and change the policies of the file, and put them in its order.

    Policies that are not in the file keep their place among the others.
    """
    errors: Errors = {}
    document = read_document(FILE, texts[FILE], (PART,), errors)
    by_trigger = _index(read_list(FILE, document, PART, errors), errors)
    by_hand = find_manual_edits([ACTION]).get(policies.AUDIT_TARGET, "")
    keeps_order = options.keeps(by_hand, is_present=True)

    def compare() -> _Plan:
        present = {row.trigger: policies.policy_fields(row) for row in history.list_policies()}
        edited = dict.fromkeys(present, by_hand)
        found = Comparison(
            *("trip policy", FILE, present, options, edited, dict(errors)),
            locate=lambda trigger, path: f"{FILE}: {PART}.{by_trigger[trigger][0]}: {path}",
        )
        for trigger, (_, fields) in by_trigger.items():
            found.compare(trigger, partial(_check_entry, fields))
        found.require_valid()
        writes = {one.name: one.after for one in found.writes}
        plan = _Plan(found, _merge(present, [*by_trigger], writes, keeps_order))
        if plan.has_changes:
            _check_rows(plan.rows)
        return plan

    def lock() -> None:
        history.lock_trips()
        publication.lock()

    def write(plan: _Plan) -> list[dict[str, Any]]:
        audit_row = policies.write_policies(plan.rows, options.actor, options.now)
        return [audit_row] if audit_row else []

    return compare_and_write(compare, lock, write, options)


@dataclass(frozen=True)
class _Plan:
    """The comparison of the policies, and all policies in their new order."""

    found: Comparison
    rows: Sequence[Document]

    @property
    def order(self) -> list[str]:
        """The new order of the present policies."""
        return [row["trigger"] for row in self.rows if row["trigger"] in self.found.present]

    @property
    def has_changes(self) -> bool:
        return self.found.has_changes or self.order != [*self.found.present]

    def build_result(self, audit_rows: Sequence[dict[str, Any]] = ()) -> Loaded:
        loaded, present = self.found.build_result(audit_rows), [*self.found.present]
        if self.order == present:
            return loaded
        difference = f"order: {', '.join(present)} → {', '.join(self.order)}"
        return loaded + Loaded((EntryChange("trip policy", "(order)", CHANGED, (difference,)),))


def export_documents() -> dict[str, Document]:
    return {FILE: {PART: [policies.policy_fields(row) for row in history.list_policies()]}}


def build_schema() -> Schema:
    pattern = schemas.text(policies.MAX_LENGTHS["pattern"], "srm, alertmanager:Leak*", least=1)
    policy = schemas.fields(
        {
            "trigger": schemas.text(60, pattern=policies.TRIGGER),
            "title": schemas.text(policies.MAX_LENGTHS["title"], least=1),
            "sources": schemas.list_of(pattern, policies.MAX_PATTERNS, least=1),
            "scopes": schemas.list_of(schemas.choice(list(SCOPES)), least=1),
            "gate": schemas.choice(TripPolicy.Gate.values),
            "response": schemas.text(policies.MAX_LENGTHS["response"]),
            **{name: schemas.whole(1, most) for name, most in policies.MAX_VALUES.items()},
        },
        ("trigger", "title", "sources", "scopes", "gate"),
    )
    listed = {PART: schemas.list_of(policy, policies.MAX_ROWS, "The first that matches decides.")}
    return schemas.file_schema(
        "Trip policies", listed, "Which trips engage a switch by themselves."
    )


def _index(entries: Sequence[Any], errors: Errors) -> dict[str, tuple[int, Mapping[str, Any]]]:
    """Return the policies with their place in the file, by trigger."""
    found: dict[str, tuple[int, Mapping[str, Any]]] = {}
    for place, fields in enumerate(entries):
        path = f"{FILE}: {PART}.{place}"
        trigger = fields.get("trigger") if isinstance(fields, Mapping) else None
        if not isinstance(fields, Mapping) or not isinstance(trigger, str):
            json_values.add_error(errors, path, "Must be a mapping with trigger, title, gate, ….")
        elif trigger in found:
            json_values.add_error(errors, f"{path}: trigger", f"{trigger} is listed twice.")
        else:
            found[trigger] = place, fields
    return found


def _check_entry(fields: Mapping[str, Any]) -> Document:
    errors: Errors = {}
    json_values.refuse_unknown("", fields, policies.FIELDS, errors)
    if errors:
        raise InvalidInput(errors)
    given = {name: value for name, value in fields.items() if value is not None}
    row = {**policies.DEFAULTS, **given}
    try:
        policies.check_rows([row])
    except InvalidInput as error:
        raise InvalidInput(
            {name.removeprefix("rows.0."): texts for name, texts in error.errors.items()}
        ) from error
    return {name: row[name] for name in policies.FIELDS}


def _check_rows(rows: Sequence[Document]) -> None:
    try:
        policies.check_rows(rows)
    except InvalidInput as error:
        raise InvalidInput(
            {f"{FILE}: {name}": texts for name, texts in error.errors.items()}
        ) from error


def _merge(
    present: Mapping[str, Document],
    order: Sequence[str],
    writes: Mapping[str, Document],
    keeps_order: bool,
) -> list[Document]:
    """Return all policies in their new order.

    The places of policies that the file names are filled in its order, then come new ones that are
    left. With `keeps_order`, new ones come last.
    """
    rows = {**present, **writes}
    if keeps_order:
        return [rows[name] for name in [*present, *(one for one in order if one not in present)]]
    listed = iter(order)
    places = [next(listed) if name in order else name for name in present]
    return [rows[name] for name in [*places, *listed]]
