"""Settings of a channel that are stored in its target's row, and the fields that ask for them."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from controlplane.notify.models.targets import Target

MAX_VALUE_LENGTH = 500


@dataclass(frozen=True, kw_only=True)
class Field:
    """One field of the API and of the form; `name` is unique among all transports.

    A secret is never shown, except its `mask`, and stays as it is if it is left out. `noun` names
    it within a sentence ("a routing key"). A `flag` is true or false and is not stored.
    """

    name: str
    label: str
    noun: str
    help_text: str = ""
    placeholder: str = ""
    pattern: str = ".+"
    mistake: str = ""
    choices: tuple[tuple[str, str], ...] = ()
    is_secret: bool = False
    is_flag: bool = False
    is_url: bool = False
    mask: Callable[[str], str] = lambda value: f"…{value[-4:]}" if value else ""


class ChannelSettings:
    """Settings stored together, sealed, in the column `transport_settings`.

    `shown_once` is the name of a secret that :meth:`write` makes and returns; `shown_once_help`
    says what it is for.
    """

    shown_once = ""
    shown_once_help = ""

    def __init__(self, *fields: Field) -> None:
        self.fields = fields

    def values(self, target: Target) -> dict[str, str]:
        """Return the stored values by field name; none if they can't be read."""
        stored = target.transport_settings
        found: dict[str, str] = orjson.loads(stored) if stored else {}
        return found

    def masked(self, target: Target) -> dict[str, str]:
        """Return what may be shown of each stored field, by name."""
        values = self.values(target)
        return {
            field.name: field.mask(values.get(field.name, ""))
            if field.is_secret
            else values.get(field.name, "")
            for field in self.fields
            if not field.is_flag
        }

    def summary(self, target: Target) -> str:
        """Return a channel's address for the screen."""
        return target.address

    def is_complete(self, target: Target) -> bool:
        """Return whether a message can be sent with the stored settings."""
        values = self.values(target)
        return all(values.get(field.name) for field in self.fields)

    def look_up(self, given: Mapping[str, Any]) -> None:
        """Check before the transaction what takes time, such as DNS; raises `InvalidInput`."""

    def check(self, given: Mapping[str, Any], present: Target | None) -> dict[str, list[str]]:
        """Return what is wrong with the fields given, by name; `present` is changed, if any."""
        values = self._merged(given, present)
        return {field.name: [text] for field in self.fields if (text := _mistake(field, values))}

    def write(self, target: Target, given: Mapping[str, Any]) -> str | None:
        """Set the target's columns, without saving; returns a new secret that is shown once."""
        values = self._merged(given, target)
        if values != self.values(target):
            target.transport_settings = orjson.dumps(values).decode()
        return None

    def clear(self, target: Target) -> None:
        """Empty the target's columns, without saving."""
        target.transport_settings = ""

    def _merged(self, given: Mapping[str, Any], present: Target | None) -> dict[str, str]:
        values = {field.name: field.choices[0][0] for field in self.fields if field.choices}
        if present is not None:
            values |= self.values(present)
        values |= {field.name: text for field in self.fields if (text := given_text(field, given))}
        return {field.name: values[field.name] for field in self.fields if field.name in values}


def given_text(field: Field, given: Mapping[str, Any]) -> str:
    """Return a field's text without white space around it; empty if it was left out."""
    value = given.get(field.name)
    return value.strip() if isinstance(value, str) else ""


def _mistake(field: Field, values: Mapping[str, str]) -> str:
    value = values.get(field.name, "")
    if field.choices:
        known = [choice for choice, _ in field.choices]
        return "" if value in known else f"One of: {', '.join(known)}."
    if len(value) > MAX_VALUE_LENGTH:
        return f"At most {MAX_VALUE_LENGTH} characters."
    return "" if re.fullmatch(field.pattern, value) else field.mistake or f"Give {field.noun}."
