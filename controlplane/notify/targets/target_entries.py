"""Entries of the configuration file `targets.yaml`: validation, and conversion to and from targets.

Entries have no secrets, such as URLs of webhooks. They are entered in the console, and loading
leaves them as they are.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.utils.dateparse import parse_datetime

from controlplane.core import json_values
from controlplane.core.canonical import timestamp
from controlplane.core.configuration.readers import Document
from controlplane.core.errors import InvalidInput
from controlplane.core.json_values import Errors, add_error
from controlplane.notify.models.targets import Target
from controlplane.notify.transports import destinations
from controlplane.notify.transports.channel_settings import SettingSpec

from . import on_call_rotation
from .directory import Directory
from .fields import TargetRequest, normalize_text

FIELDS_BY_KIND: Mapping[str, tuple[str, ...]] = {
    Target.Kind.PERSON: ("user", "email", "slack_user_id"),
    Target.Kind.CHANNEL: ("address", "settings"),
    Target.Kind.ON_CALL: ("members", "rotation_days", "rotation_starts_at", "time_zone"),
    Target.Kind.ESCALATION: ("steps",),
}
"""Fields of each kind, besides kind and description; targets are written in this order."""
COMMON = ("kind", "description")
STEP_FIELDS = ("after_minutes", "target")
DEFAULTS: Document = {
    "description": "",
    "user": "",
    "email": "",
    "slack_user_id": "",
    "address": "",
    "settings": {},
    "members": [],
    "rotation_days": on_call_rotation.USUAL_DAYS,
    "rotation_starts_at": None,
    "time_zone": "UTC",
    "steps": [],
}


def visible_fields() -> list[SettingSpec]:
    """Return the settings of channels that files may have: those that are not secret."""
    return [one for one in destinations.channel_fields() if not (one.is_secret or one.is_flag)]


def read_entry(fields: Mapping[str, Any]) -> Document:
    """Return the complete entry of a target, by its kind; raise :class:`InvalidInput`.

    Names of other targets are not looked up.
    """
    errors: Errors = {}
    kind = json_values.read_choice("kind", fields.get("kind"), Target.Kind.values, errors)
    own = FIELDS_BY_KIND.get(kind, tuple(DEFAULTS))
    json_values.refuse_unknown("", fields, (*COMMON, *own), errors)
    given = {name: value for name, value in fields.items() if value is not None}
    entry: Document = {"kind": kind}
    for name in ("description", *own):
        value = given.get(name, DEFAULTS[name])
        entry[name] = _READ[name](name, value, errors) if name in _READ else value
        if name not in _READ and not isinstance(value, str):
            add_error(errors, name, "Must be a string.")
        elif isinstance(value, str) and name not in _READ:
            entry[name] = normalize_text(value)
    if errors:
        raise InvalidInput(errors)
    return entry


def to_entry(target: Target, known: Directory) -> Document:
    """Return the entry of a saved target."""
    starts_at = target.rotation_starts_at
    steps = known.steps.get(target.pk, ())
    values: Document = {
        "description": target.description,
        "user": target.user.username if target.user else "",
        "email": target.email,
        "slack_user_id": target.slack_user_id,
        "address": target.address,
        "settings": _visible_settings(target),
        "members": [person.name for person in known.members.get(target.pk, ())],
        "rotation_days": target.rotation_days or on_call_rotation.USUAL_DAYS,
        "rotation_starts_at": timestamp(starts_at) if starts_at else None,
        "time_zone": target.time_zone,
        "steps": [{"after_minutes": one.after_minutes, "target": one.target.name} for one in steps],
    }
    own = FIELDS_BY_KIND[target.kind]
    return {"kind": str(target.kind), **{name: values[name] for name in ("description", *own)}}


def to_request(name: str, entry: Document) -> TargetRequest:
    """Return the request to write a target, from a complete entry."""
    values = dict(entry)
    steps = [(step["after_minutes"], step["target"]) for step in values.pop("steps", ())]
    starts_at = values.pop("rotation_starts_at", None)
    return TargetRequest(
        name=name,
        **values,
        steps=steps,
        rotation_starts_at=parse_datetime(starts_at) if starts_at else None,
        secrets_later=True,
    )


def shorten(entry: Document) -> Document:
    """Return an entry without the fields that have their default."""
    return {
        name: value for name, value in entry.items() if name == "kind" or value != DEFAULTS[name]
    }


def missing_secrets(target: Target) -> list[str]:
    """Return what a person has to enter for a channel, such as `a routing key`."""
    transport = destinations.transport_of(target) if target.kind == Target.Kind.CHANNEL else None
    if transport is None or transport.settings is None or transport.settings.is_complete(target):
        return []
    return [one.noun for one in transport.settings.fields if one.is_secret]


def _visible_settings(target: Target) -> dict[str, str]:
    if target.kind != Target.Kind.CHANNEL:
        return {}
    shown = destinations.visible_settings(target)
    names = {one.name for one in visible_fields()}
    return {name: value for name, value in shown.items() if name in names and value}


def _read_settings(path: str, value: Any, errors: Errors) -> dict[str, str]:
    if not isinstance(value, Mapping):
        add_error(errors, path, "Must be a mapping of names to values.")
        return {}
    secret = {one.name for one in destinations.channel_fields() if one.is_secret or one.is_flag}
    for name in secret & value.keys():
        message = "Files have no secrets. Enter it on the page Notifications."
        add_error(errors, f"{path}.{name}", message)
    plain = {str(name): one for name, one in value.items() if name not in secret}
    json_values.refuse_unknown(path, plain, [one.name for one in visible_fields()], errors)
    for name, one in plain.items():
        if not isinstance(one, str):
            add_error(errors, f"{path}.{name}", "Must be a string.")
    return plain


def _read_members(path: str, value: Any, errors: Errors) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        add_error(errors, path, "Must be a list of names.")
        return []
    return [normalize_text(one) for one in value]


def _read_days(path: str, value: Any, errors: Errors) -> int:
    return json_values.read_integer(path, value, 1, on_call_rotation.MAX_DAYS, errors)


def _read_time(path: str, value: Any, errors: Errors) -> str | None:
    if value is None:
        return None
    try:
        found = parse_datetime(value) if isinstance(value, str) else value
    except ValueError:
        found = None
    if not isinstance(found, datetime) or found.tzinfo is None:
        add_error(errors, path, "Must be a time with an offset, such as 2026-11-21T09:00:00Z.")
        return None
    return timestamp(found)


def _read_steps(path: str, value: Any, errors: Errors) -> list[Document]:
    if not isinstance(value, list):
        add_error(errors, path, "Must be a list of steps.")
        return []
    found = []
    for place, step in enumerate(value):
        where = f"{path}.{place}"
        if not isinstance(step, Mapping):
            add_error(errors, where, "Must be a mapping with after_minutes and target.")
            continue
        json_values.refuse_unknown(where, step, STEP_FIELDS, errors)
        minutes, target = step.get("after_minutes"), step.get("target")
        if not isinstance(target, str):
            add_error(errors, f"{where}.target", "Must be the name of a target.")
        minutes = json_values.read_integer(f"{where}.after_minutes", minutes, 0, None, errors)
        found.append({"after_minutes": minutes, "target": normalize_text(str(target))})
    return found


_READ = {
    "settings": _read_settings,
    "members": _read_members,
    "rotation_days": _read_days,
    "rotation_starts_at": _read_time,
    "steps": _read_steps,
}
