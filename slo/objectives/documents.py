"""The document of an SLO: validated, converted from and to its row.

Missing fields get their defaults; unknown ones are refused. Pure but for :func:`to_document` and
:func:`apply_document`.
"""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from controlplane.core import json_values
from controlplane.core.errors import InvalidInput
from controlplane.core.json_values import Errors, add_error
from slo.arithmetic.objective import Objective, json_number
from slo.evaluation import objective_loader
from slo.models import Slo

from . import names
from .rules import read_rules
from .sources_and_actions import read_actions, read_source

Document = dict[str, Any]

RESERVED_NAMES = frozenset({"new", "thresholds"})
"""Names of fixed pages beside those of SLOs."""
SERVICE = r"[a-z0-9-]{1,60}"
MAX_DAYS = 366
MAX_EVENTS = 10**15
DECIMALS = 8
FIELDS = (
    "service", "kind", "target", "window_days", "threshold_ms", "source", "rules", "min_events",
    "actions", "description", "owner", "runbook_url",
)  # fmt: skip
KINDS = tuple(Slo.Kind.values)

_SERVICE = re.compile(SERVICE, re.ASCII)


def validate(name: str, fields: Mapping[str, Any]) -> Document:
    """Return the whole document of these fields (without the name), defaults filled in.

    Raise :class:`InvalidInput`, which names each wrong field (`rules.0.burn_rate`).
    """
    errors: Errors = {}
    names.check_name(name, RESERVED_NAMES, errors)
    json_values.refuse_unknown("", fields, FIELDS, errors)
    kind = json_values.read_choice("kind", _given_or(fields, "kind", "availability"), KINDS, errors)
    service = json_values.read_text("service", fields.get("service"), 60, errors)
    if service and not is_valid_service(service):
        add_error(errors, "service", "Must be 1 to 60 of the letters, digits and signs a-z 0-9 -")
    target = _target(fields.get("target"), errors)
    days = json_values.read_integer(
        "window_days", _given_or(fields, "window_days", 30), 1, MAX_DAYS, errors
    )
    document = {
        "service": service,
        "kind": kind,
        "target": json_number(target),
        "window_days": days,
        "threshold_ms": _threshold(fields.get("threshold_ms"), kind, errors),
        "source": read_source(fields.get("source"), errors),
        "rules": read_rules(fields.get("rules"), target, days, errors),
        "min_events": json_values.read_integer(
            "min_events", _given_or(fields, "min_events", 0), 0, MAX_EVENTS, errors
        ),
        "actions": read_actions(fields.get("actions"), service, errors),
        "description": json_values.read_text(
            "description", fields.get("description"), 4000, errors
        ),
        "owner": json_values.read_text("owner", fields.get("owner"), 200, errors),
        "runbook_url": json_values.read_url("runbook_url", fields.get("runbook_url"), 500, errors),
    }
    if errors:
        raise InvalidInput(errors)
    return document


def to_document(slo: Slo) -> Document:
    """Return the document of a row, without the name."""
    found = {field: getattr(slo, field) for field in FIELDS}
    return {
        **found,
        "target": float(slo.target),
        "threshold_ms": threshold_as_number(slo.threshold_ms),
    }


def threshold_as_number(threshold_ms: float | None) -> int | float | None:
    """Return a threshold as a number, as an integer if it is whole."""
    return None if threshold_ms is None else json_number(Decimal(str(threshold_ms)))


def apply_document(slo: Slo, document: Mapping[str, Any]) -> None:
    """Set the fields of a row from a validated document; nothing is written."""
    for field in FIELDS:
        setattr(slo, field, document[field])
    slo.target = Decimal(str(document["target"]))


def to_objective(document: Mapping[str, Any]) -> Objective:
    """Return a document as an objective; numbers are exactly the decimals as written."""
    return Objective(
        target=Decimal(str(document["target"])),
        window_days=document["window_days"],
        rules=objective_loader.parse_rules(document["rules"]),
        min_events=document["min_events"],
    )


def is_valid_name(text: str) -> bool:
    return names.is_valid_name(text, RESERVED_NAMES)


def is_valid_service(text: str) -> bool:
    return _SERVICE.fullmatch(text) is not None


def _target(given: Any, errors: Errors) -> Decimal:
    """Return the target, or a usable default if it is wrong, to validate the rest."""
    usable = Decimal("0.999")
    if given is None:
        add_error(errors, "target", "Say which share of events shall be good, such as 0.999.")
        return usable
    noted = len(errors)
    value = json_values.read_number("target", given, None, None, errors)
    if len(errors) > noted:
        return usable
    target = Decimal(str(value))
    if not 0 < target < 1:
        meant = target / 100
        hint = f" 99.9 % is 0.999: did you mean {meant:f}?" if 1 < target < 100 else ""
        add_error(errors, "target", f"Must be a share above 0 and below 1.{hint}")
        return usable
    if int(target.as_tuple().exponent) < -DECIMALS:
        add_error(errors, "target", f"At most {DECIMALS} decimals.")
        return usable
    return target


def _threshold(given: Any, kind: str, errors: Errors) -> float | None:
    if kind == Slo.Kind.LATENCY:
        if given is None:
            add_error(errors, "threshold_ms", "Say within how many milliseconds an event is good.")
            return None
        found = json_values.read_number("threshold_ms", given, 0, 1e9, errors)
        if found == 0 and "threshold_ms" not in errors:
            add_error(errors, "threshold_ms", "Must be above 0.")
        return found
    if given is not None and kind:
        add_error(errors, "threshold_ms", "Only an SLO of kind latency has one.")
    return None


def _given_or(fields: Mapping[str, Any], name: str, default: Any) -> Any:
    value = fields.get(name)
    return default if value is None else value
