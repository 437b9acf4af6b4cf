"""Parser of the configuration file `slo.yaml`: SLOs of a service.

Each of the keys `availability`, `error_rate` and `p95_latency` (or another percentile) defines an
SLO of `service`; `slos` has more SLOs by name. `burn_rate_alerts` are the rules of SLOs that have
no rules of their own.
"""

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from controlplane.core.configuration.files import parse_document, read_entries
from controlplane.core.errors import InvalidInput
from controlplane.core.json_values import Errors, add_error
from slo.arithmetic.minutes import window_minutes
from slo.arithmetic.objective import PAGE, TICKET, json_number

from . import documents, rules

FILE = "slo.yaml"
SHORTHANDS = ("availability", "error_rate")
PARTS = ("service", "slos", "burn_rate_alerts", *SHORTHANDS)
ALERT_FIELDS = {"window": "long", "short": "short", "burn_rate": "burn_rate"}
MAX_PAGE_MINUTES = 60
"""Longest window, in minutes, of a rule that pages if the file gives no severity."""
_PERCENTILE = re.compile(r"p([1-9][0-9]?(?:\.[0-9]+)?)_latency")
_SHARE = re.compile(r"<?\s*([0-9]+(?:\.[0-9]+)?)\s*(%?)")
_TIME = re.compile(r"<?=?\s*([0-9]{1,15}(?:\.[0-9]{1,15})?)\s*(ms|s|m)")
_ALERT = re.compile(r"\s*(\S+) burn rate > ([0-9]+(?:\.[0-9]+)?)\s*")
_MILLISECONDS = {"ms": 1, "s": 1000, "m": 60_000}


def parse_slo_file(text: str) -> documents.ParsedSlos:
    """Parse the text of `slo.yaml`. Raise :class:`InvalidInput` naming its invalid keys."""
    errors: Errors = {}
    raw = parse_document(FILE, text, errors)
    service = raw.get("service") or ""
    if not isinstance(service, str) or (service and not documents.is_valid_service(service)):
        add_error(errors, f"{FILE}: service", "Must be a service's slug, such as core.")
        service = ""
    alerts = _parse_alerts(raw.get("burn_rate_alerts"), errors)
    remarks: list[str] = []
    slos: dict[str, documents.Document] = {}
    keys: dict[str, str] = {}
    for key, name, fields in _list_entries(raw, service, errors):
        if name in slos:
            add_error(errors, f"{FILE}: {key}", f"{name} is already listed, as {keys[name]}.")
            continue
        if "rules" not in fields and alerts is not None:
            fields["rules"] = _reachable_rules(name, fields, alerts, remarks)
        keys[name] = key
        try:
            slos[name] = documents.validate(name, fields)
        except InvalidInput as error:
            for path, message in error.errors.items():
                errors[f"{FILE}: {key}: {path}"] = message
    if errors:
        raise InvalidInput(errors)
    return documents.ParsedSlos(slos, tuple(remarks))


def _list_entries(
    raw: Mapping[str, Any], service: str, errors: Errors
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for key, value in raw.items():
        percentile = _PERCENTILE.fullmatch(str(key))
        path, errors_before = f"{FILE}: {key}", len(errors)
        fields: dict[str, Any] = {"service": service}
        if percentile:
            share = Decimal(percentile[1]) / 100
            fields |= {"kind": "latency", "target": json_number(share)}
            fields["threshold_ms"] = _parse_milliseconds(path, value, errors)
        elif key == "availability":
            fields |= {"kind": "availability", "target": _parse_share(path, value, errors)}
        elif key == "error_rate":
            bad = _parse_share(path, value, errors)
            good = None if bad is None else json_number(1 - Decimal(str(bad)))
            fields |= {"kind": "ratio", "target": good}
        elif key == "slos":
            yield from _list_named(raw, service, errors)
            continue
        elif key in PARTS:
            continue
        else:
            known_keys = ", ".join(("p95_latency", *PARTS))
            add_error(errors, path, f"Unknown; use one of {known_keys}.")
        if len(errors) > errors_before:
            continue
        name = str(key).replace("_", "-")
        yield str(key), f"{service}-{name}" if service else name, fields


def _list_named(
    raw: Mapping[str, Any], service: str, errors: Errors
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for name, entry in read_entries(FILE, raw, "slos", errors).items():
        fields = {"service": service, **entry}
        if isinstance(fields.get("target"), str):
            path = f"{FILE}: slos: {name}: target"
            fields["target"] = _parse_share(path, fields["target"], errors)
        yield f"slos: {name}", name, fields


def _parse_alerts(raw: Any, errors: Errors) -> list[dict[str, Any]] | None:
    """Convert the value of `burn_rate_alerts` to rule documents; None if it is missing."""
    path = f"{FILE}: burn_rate_alerts"
    if raw is None:
        return None
    if not isinstance(raw, list):
        add_error(errors, path, "Must be a list.")
        return None
    found = []
    for place, one in enumerate(raw):
        written = _ALERT.fullmatch(one) if isinstance(one, str) else None
        if written:
            burn_rate = json_number(Decimal(written[2]))
            one = {"window": written[1], "burn_rate": burn_rate}
        if not isinstance(one, Mapping) or one.keys() - {*ALERT_FIELDS, "severity"}:
            message = "Must be {window, burn_rate, severity}, or a string: 1h burn rate > 14."
            add_error(errors, f"{path}.{place}", message)
            continue
        rule = {field: one.get(key) for key, field in ALERT_FIELDS.items()}
        found.append({**rule, "severity": one.get("severity") or _default_severity(rule["long"])})
    return found


def _reachable_rules(
    name: str, fields: Mapping[str, Any], alerts: list[dict[str, Any]], remarks: list[str]
) -> list[dict[str, Any]]:
    """Return those of the rules `alerts` that can fire at the SLO's target.

    A remark is added for each of the others.
    """
    try:
        target = Decimal(str(fields.get("target")))
    except InvalidOperation:
        return alerts
    found = []
    for rule in alerts:
        burn_rate = rule["burn_rate"]
        is_number = isinstance(burn_rate, int | float) and not isinstance(burn_rate, bool)
        if is_number and 0 < target < 1 and not rules.can_fire(Decimal(str(burn_rate)), target):
            message = f"a burn rate above {burn_rate:g} can't be reached at {target:f}; ignored."
            remarks.append(f"{FILE}: {name}: {message}")
        else:
            found.append(rule)
    return found


def _default_severity(window: Any) -> str:
    try:
        return PAGE if window_minutes(str(window)) <= MAX_PAGE_MINUTES else TICKET
    except ValueError:
        return PAGE


def _parse_share(path: str, value: Any, errors: Errors) -> float | None:
    """Parse a share: `99.9%` is 0.999; a number is the share itself."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    written = _SHARE.fullmatch(value.strip()) if isinstance(value, str) else None
    if written is None:
        add_error(errors, path, "Must be a share, such as 99.9% or 0.999.")
        return None
    share = Decimal(written[1])
    return json_number(share / 100 if written[2] else share)


def _parse_milliseconds(path: str, value: Any, errors: Errors) -> float | None:
    written = _TIME.fullmatch(value.strip()) if isinstance(value, str) else None
    if written is None:
        add_error(errors, path, "Must be a time with a unit, such as 300ms or 3s.")
        return None
    return json_number(Decimal(written[1]) * _MILLISECONDS[written[2]])
