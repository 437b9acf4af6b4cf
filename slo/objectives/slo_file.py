"""`slo.yaml`: shorthands for the SLOs of a service, and any other SLO by its name. Pure.

`availability`, `error_rate` and `p95_latency` (any percentile) each are an SLO of `service`;
`burn_rate_alerts` are the rules of all SLOs without their own.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from controlplane.core.configuration.files import parse_document
from controlplane.core.errors import InvalidInput
from controlplane.core.json_values import Errors, add_error
from slo.arithmetic.minutes import window_minutes
from slo.arithmetic.objective import PAGE, TICKET, json_number

from . import documents, presets

FILE = "slo.yaml"
SHORTHANDS = ("availability", "error_rate")
PARTS = ("service", "slos", "burn_rate_alerts", *SHORTHANDS)
ALERT_FIELDS = {"window": "long", "short": "short", "burn_rate": "burn_rate"}
MAX_PAGE_MINUTES = 60
"""A rule over a window up to this length pages, unless it says otherwise."""
_PERCENTILE = re.compile(r"p([1-9][0-9]?(?:\.[0-9]+)?)_latency")
_SHARE = re.compile(r"<?\s*([0-9]+(?:\.[0-9]+)?)\s*(%?)")
_TIME = re.compile(r"<?=?\s*([0-9]{1,15}(?:\.[0-9]{1,15})?)\s*(ms|s|m)")
_ALERT = re.compile(r"\s*(\S+) burn rate > ([0-9]+(?:\.[0-9]+)?)\s*")
_MILLISECONDS = {"ms": 1, "s": 1000, "m": 60_000}


@dataclass(frozen=True)
class SloFile:
    """Documents by name, each with its key in the file, and remarks."""

    slos: Mapping[str, documents.Document]
    keys: Mapping[str, str]
    remarks: tuple[str, ...] = ()


def parse_slo_file(text: str) -> SloFile:
    """Parse the file. Raise :class:`InvalidInput`, which names its keys."""
    errors: Errors = {}
    given = parse_document(FILE, text, errors)
    service = given.get("service") or ""
    if not isinstance(service, str) or (service and not documents.is_valid_service(service)):
        add_error(errors, f"{FILE}: service", "Must be a service's slug, such as core.")
        service = ""
    alerts = _alerts(given.get("burn_rate_alerts"), errors)
    remarks: list[str] = []
    slos: dict[str, documents.Document] = {}
    keys: dict[str, str] = {}
    for key, name, fields in _entries(given, service, errors):
        if name in slos:
            add_error(errors, f"{FILE}: {key}", f"{name} is there already, as {keys[name]}.")
            continue
        if "rules" not in fields and alerts is not None:
            fields["rules"] = _reachable_rules(name, fields, alerts, remarks)
        keys[name] = key
        try:
            slos[name] = documents.validate(name, fields)
        except InvalidInput as error:
            for path, said in error.errors.items():
                errors[f"{FILE}: {key}: {path}"] = said
    if errors:
        raise InvalidInput(errors)
    return SloFile(slos, keys, tuple(remarks))


def _entries(
    given: Mapping[str, Any], service: str, errors: Errors
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield the key, name and fields of each SLO."""
    for key, value in given.items():
        percentile = _PERCENTILE.fullmatch(str(key))
        path, noted = f"{FILE}: {key}", len(errors)
        fields: dict[str, Any] = {"service": service}
        if percentile:
            share = Decimal(percentile[1]) / 100
            fields |= {"kind": "latency", "target": json_number(share)}
            fields["threshold_ms"] = _milliseconds(path, value, errors)
        elif key == "availability":
            fields |= {"kind": "availability", "target": _share(path, value, errors)}
        elif key == "error_rate":
            bad = _share(path, value, errors)
            good = None if bad is None else json_number(1 - Decimal(str(bad)))
            fields |= {"kind": "ratio", "target": good}
        elif key == "slos":
            yield from _named(value, service, errors)
            continue
        elif key in PARTS:
            continue
        else:
            there = ", ".join(("p95_latency", *PARTS))
            add_error(errors, path, f"Unknown; there are {there}.")
        if len(errors) > noted:
            continue
        name = str(key).replace("_", "-")
        yield str(key), f"{service}-{name}" if service else name, fields


def _named(given: Any, service: str, errors: Errors) -> Iterator[tuple[str, str, dict[str, Any]]]:
    if not isinstance(given, Mapping | None):
        add_error(errors, f"{FILE}: slos", "Must be names with what each says.")
        return
    for name, entry in (given or {}).items():
        path = f"{FILE}: slos: {name}"
        if not isinstance(name, str) or not isinstance(entry, Mapping):
            add_error(errors, path, "Must be a name with what it says.")
            continue
        fields = {"service": service, **{str(key): value for key, value in entry.items()}}
        if isinstance(fields.get("target"), str):
            fields["target"] = _share(f"{path}: target", fields["target"], errors)
        yield f"slos: {name}", name, fields


def _alerts(given: Any, errors: Errors) -> list[dict[str, Any]] | None:
    """Return the rules of all SLOs as documents, None if the file has none."""
    path = f"{FILE}: burn_rate_alerts"
    if given is None:
        return None
    if not isinstance(given, list):
        add_error(errors, path, "Must be a list.")
        return None
    found = []
    for place, one in enumerate(given):
        written = _ALERT.fullmatch(one) if isinstance(one, str) else None
        if written:
            burn_rate = json_number(Decimal(written[2]))
            one = {"window": written[1], "burn_rate": burn_rate}
        if not isinstance(one, Mapping) or one.keys() - {*ALERT_FIELDS, "severity"}:
            said = "Must be {window, burn_rate, severity}, or a text: 1h burn rate > 14."
            add_error(errors, f"{path}.{place}", said)
            continue
        rule = {field: one.get(key) for key, field in ALERT_FIELDS.items()}
        found.append({**rule, "severity": one.get("severity") or _severity(rule["long"])})
    return found


def _reachable_rules(
    name: str, fields: Mapping[str, Any], alerts: list[dict[str, Any]], remarks: list[str]
) -> list[dict[str, Any]]:
    """Return the rules of all SLOs without those that can never fire at this target."""
    try:
        target = Decimal(str(fields.get("target")))
    except InvalidOperation:
        return alerts
    found = []
    for rule in alerts:
        burn_rate = rule["burn_rate"]
        is_number = isinstance(burn_rate, int | float) and not isinstance(burn_rate, bool)
        if is_number and 0 < target < 1 and not presets.can_fire(Decimal(str(burn_rate)), target):
            said = f"a burn rate above {burn_rate:g} can't be reached at {target:f}; left out."
            remarks.append(f"{FILE}: {name}: {said}")
        else:
            found.append(rule)
    return found


def _severity(window: Any) -> str:
    try:
        return PAGE if window_minutes(str(window)) <= MAX_PAGE_MINUTES else TICKET
    except ValueError:
        return PAGE


def _share(path: str, value: Any, errors: Errors) -> float | None:
    """Parse a share: 0.999 of `99.9%`; a number is the share itself."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    written = _SHARE.fullmatch(value.strip()) if isinstance(value, str) else None
    if written is None:
        add_error(errors, path, "Must be a share, such as 99.9% or 0.999.")
        return None
    share = Decimal(written[1])
    return json_number(share / 100 if written[2] else share)


def _milliseconds(path: str, value: Any, errors: Errors) -> float | None:
    written = _TIME.fullmatch(value.strip()) if isinstance(value, str) else None
    if written is None:
        add_error(errors, path, "Must be a time with its unit, such as 300ms or 3s.")
        return None
    return json_number(Decimal(written[1]) * _MILLISECONDS[written[2]])
