"""Settings of a channel, stored in its target's row, and their fields in the API and the form."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from controlplane.notify.models.targets import Target

MAX_VALUE_LENGTH = 500


@dataclass(frozen=True, kw_only=True)
class Field:
    """A field of the API and of the form; `name` is unique among all transports.

    Of a secret only its `mask` is shown; if omitted, a stored secret is kept. `noun` names the
    field within a sentence ("a routing key"). A flag is a boolean that is not stored.
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

    `shown_once` is the name of a secret that :meth:`write` generates and returns; `shown_once_help`
    explains its use.
    """

    shown_once = ""
    shown_once_help = ""

    def __init__(self, *fields: Field) -> None:
        self.fields = fields

    def values(self, target: Target) -> dict[str, str]:
        """Return the stored values by field name; empty if they can't be decrypted."""
        stored = target.transport_settings
        found: dict[str, str] = orjson.loads(stored) if stored else {}
        return found

    def masked(self, target: Target) -> dict[str, str]:
        """Return the displayable values of the stored fields, by name."""
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
        """Run slow checks, such as DNS, before the transaction; raises `InvalidInput`."""

    def check(self, given: Mapping[str, Any], present: Target | None) -> dict[str, list[str]]:
        """Return the errors of the given fields, by name; `present` is the channel to change."""
        values = self._merged(given, present)
        return {field.name: [text] for field in self.fields if (text := _mistake(field, values))}

    def write(self, target: Target, given: Mapping[str, Any]) -> str | None:
        """Set the target's columns without saving; return a newly generated secret, if any."""
        values = self._merged(given, target)
        if values != self.values(target):
            target.transport_settings = orjson.dumps(values).decode()
        return None

    def clear(self, target: Target) -> None:
        """Empty the target's columns without saving."""
        target.transport_settings = ""

    def _merged(self, given: Mapping[str, Any], present: Target | None) -> dict[str, str]:
        values = {field.name: field.choices[0][0] for field in self.fields if field.choices}
        if present is not None:
            values |= self.values(present)
        values |= {field.name: text for field in self.fields if (text := given_text(field, given))}
        return {field.name: values[field.name] for field in self.fields if field.name in values}


def given_text(field: Field, given: Mapping[str, Any]) -> str:
    """Return a field's text without surrounding white space; empty if omitted."""
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
