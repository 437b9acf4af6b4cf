"""Forms of breaker pages. They parse texts; `breakers.services` validates the values."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms

from breakers.models import Override
from breakers.policies.parameters import PARAMETERS, SECTIONS, Parameter
from breakers.policies.policy import OUTAGE_ACTIONS, OUTAGE_FIELDS
from breakers.policies.values import number_text
from controlplane.core.change_views import ServiceForm
from controlplane.core.json_values import Errors, add_error
from controlplane.core.reasons import MAX_CHARACTERS

HOW_LONG = {"15m": "15 minutes", "1h": "1 hour", "4h": "4 hours", "24h": "24 hours"}
OTHER = "other"
LONG_TEXT = 300  # characters; longer texts get a field of several lines
MAX_VALUE_LENGTH = 20_000  # characters of one field, more than any parameter allows


class OverrideForm(ServiceForm):
    """Form of an override: mode, reason, and a duration that is chosen or typed."""

    renamed = {"expires_in": "how_long"}

    mode = forms.ChoiceField(
        choices=Override.Mode.choices, error_messages={"required": "Choose a mode."}
    )
    reason = forms.CharField(max_length=MAX_CHARACTERS * 2, required=False)
    how_long = forms.ChoiceField(
        choices=[*HOW_LONG.items(), (OTHER, "other")], initial="1h", required=False
    )
    other = forms.CharField(max_length=20, required=False)

    def service_arguments(self) -> dict[str, Any]:
        how_long = self.get_text("how_long") or "1h"
        return {
            "mode": self.get_text("mode"),
            "reason": self.get_text("reason"),
            "expires_in": self.get_text("other") if how_long == OTHER else how_long,
        }


class BreakerReasonForm(ServiceForm):
    reason = forms.CharField(max_length=MAX_CHARACTERS, required=False)


@dataclass(frozen=True)
class PolicyField:
    """A field of the policy form; `text` is what the user entered, else the present value."""

    parameter: Parameter
    text: str
    errors: Sequence[str]

    @property
    def id(self) -> str:
        return f"id_{self.parameter.path.replace('.', '-')}"

    @property
    def is_long(self) -> bool:
        kind, most = self.parameter.kind, self.parameter.most or 0
        return kind in {"words", "chain"} or (kind == "text" and most > LONG_TEXT)

    @property
    def default_text(self) -> str:
        return typed_text(self.parameter, self.parameter.default)


@dataclass(frozen=True)
class PolicyFormSection:
    """A section of the policy form; `is_on` is True if the policy defines it."""

    name: str
    is_on: bool
    fields: Sequence[PolicyField]
    errors: Sequence[str]


def untouched_texts(document: Mapping[str, Any], on_outage: Mapping[str, Any]) -> dict[str, str]:
    """Return the form's texts before any input, from the policy's values.

    In a section that the policy lacks, choice fields have their defaults and all other fields are
    empty.
    """
    found = {}
    for parameter in PARAMETERS:
        part = document.get(parameter.section) if parameter.section else document
        value = part.get(parameter.name) if isinstance(part, Mapping) else None
        if isinstance(part, Mapping) and parameter.name in part:
            found[parameter.path] = typed_text(parameter, value)
        elif part is None and parameter.kind != "choice":
            found[parameter.path] = ""
        else:
            found[parameter.path] = typed_text(parameter, parameter.default)
    for section in SECTIONS:
        found[f"has.{section}"] = "on" if document.get(section) else ""
    found["routes"] = "\n".join(
        " ".join(filter(None, (one["pattern"], str(one["timeout_ms"]), one.get("reason", ""))))
        for one in document.get("routes") or []
    )
    for name in OUTAGE_FIELDS:
        found[f"on_outage.{name}"] = str(on_outage.get(name, ""))
    return found


def read_posted(data: Mapping[str, Any]) -> dict[str, str]:
    names = [one.path for one in PARAMETERS]
    names += [f"has.{section}" for section in SECTIONS]
    names += ["routes", *(f"on_outage.{name}" for name in OUTAGE_FIELDS)]
    return {
        name: str(data.get(name, "")).replace("\r\n", "\n").replace("\x00", "")[:MAX_VALUE_LENGTH]
        for name in names
    }


def parse_fields(texts: Mapping[str, str]) -> tuple[dict[str, Any], Errors]:
    """Return the policy fields that the form's texts contain, and errors of invalid texts."""
    errors: Errors = {}
    fields: dict[str, Any] = {}
    for parameter in PARAMETERS:
        section = parameter.section
        if section and not texts.get(f"has.{section}"):
            continue
        place = fields.setdefault(section, {}) if section else fields
        place[parameter.name] = _parse_value(
            parameter, texts.get(parameter.path, "").strip(), errors
        )
    fields["routes"] = [*_parse_routes(texts.get("routes", ""), errors)]
    fields["on_outage"] = _parse_outage(texts, errors)
    return fields, errors


def build_sections(texts: Mapping[str, str], errors: Errors) -> list[PolicyFormSection]:
    found = []
    for section in ("", *SECTIONS):
        fields = [
            PolicyField(one, texts.get(one.path, ""), errors_about(one.path, errors))
            for one in PARAMETERS
            if one.section == section
        ]
        is_on = not section or bool(texts.get(f"has.{section}"))
        own = errors.get(section, []) if section else []
        found.append(PolicyFormSection(section, is_on, fields, own))
    return found


def unplaced_errors(errors: Errors) -> list[str]:
    """Return the errors that belong to no field of the form, as `path: message`."""
    known = ("routes", "on_outage", *(one.path for one in PARAMETERS))
    return [
        f"{path}: {' '.join(messages)}"
        for path, messages in errors.items()
        if path not in (*known, *SECTIONS) and not any(path.startswith(f"{one}.") for one in known)
    ]


def typed_text(parameter: Parameter, value: Any) -> str:
    """Return a parameter's value as a user would type it; empty for None.

    It is also empty for a dict, which is a default that depends on another parameter.
    """
    if value is None or isinstance(value, dict):
        return ""
    if parameter.kind == "words":
        return ", ".join(str(one) for one in value)
    if parameter.kind == "chain":
        return "\n".join(
            one if isinstance(one, str) else json.dumps(one, ensure_ascii=False) for one in value
        )
    return number_text(value) if isinstance(value, float) else str(value)


def _parse_value(parameter: Parameter, text: str, errors: Errors) -> Any:
    if not text:
        return None
    try:
        match parameter.kind:
            case "whole":
                return int(text.replace(" ", ""))
            case "number":
                return float(text.replace(" ", ""))
            case "words":
                return [word for word in text.replace(",", " ").split() if word]
            case "chain":
                return [
                    json.loads(line) if line.startswith("{") else line
                    for line in (line.strip() for line in text.split("\n"))
                    if line
                ]
            case _:
                return text
    except ValueError:
        messages = {
            "whole": "Enter a whole number.",
            "number": "Enter a number.",
            "chain": "A line that begins with { must be JSON.",
        }
        add_error(errors, parameter.path, messages[parameter.kind])
        return None


def _parse_routes(text: str, errors: Errors) -> Iterator[dict[str, Any]]:
    """Yield a route for each line: path pattern, timeout in milliseconds, optionally the reason."""
    for number, line in enumerate(filter(None, (line.strip() for line in text.split("\n"))), 1):
        pattern, _, rest = line.partition(" ")
        milliseconds, _, reason = rest.strip().partition(" ")
        if not milliseconds.isdecimal():
            add_error(errors, "routes", f"Line {number}: enter a pattern, then milliseconds.")
            continue
        route = {"pattern": pattern, "timeout_ms": int(milliseconds)}
        yield {**route, "reason": reason.strip()} if reason.strip() else route


def _parse_outage(texts: Mapping[str, str], errors: Errors) -> dict[str, Any]:
    given = {name: texts.get(f"on_outage.{name}", "").strip() for name in OUTAGE_FIELDS}
    if given["action"] not in OUTAGE_ACTIONS:
        return {}
    found: dict[str, Any] = {"action": given["action"]}
    for name in ("open_share", "for_seconds"):
        if given[name]:
            try:
                found[name] = float(given[name])
            except ValueError:
                add_error(errors, f"on_outage.{name}", "Enter a number.")
    if given["expires_in"]:
        found["expires_in"] = given["expires_in"]
    if given["switch"] and given["action"] == "trip":
        found["switch"] = given["switch"]
    return found


def errors_about(path: str, errors: Errors) -> list[str]:
    """Return the errors of the field `path` and of items in it (`retry.never.3`)."""
    return [
        text
        for place, texts in errors.items()
        if place == path or place.startswith(f"{path}.")
        for text in texts
    ]
