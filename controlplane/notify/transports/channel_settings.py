"""Settings of a channel in its target's row, and their fields in the API and the form."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from controlplane.notify.models.targets import Target

MAX_VALUE_LENGTH = 500


@dataclass(frozen=True, kw_only=True)
class SettingSpec:
    """A setting that channels of one transport have; its `name` is unique among all transports.

    A secret is shown only as its `mask`; a request that omits it keeps the stored value.
    `noun` names the setting in a sentence ("a routing key"). A flag is a boolean that applies to
    one request and is not stored.
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
    """The settings that channels of one transport have, stored encrypted in `transport_settings`.

    `shown_once` is the name of a secret that :meth:`write` generates and returns; `shown_once_help`
    explains its use to the user.
    """

    shown_once = ""
    shown_once_help = ""

    def __init__(self, *fields: SettingSpec) -> None:
        self.fields = fields
        self._seen_secrets: set[str] = set()

    def reaches(self, destination: str) -> bool:
        """Return True if the destination is a channel of this kind with complete settings."""
        channel = find_channel(destination)
        return channel is not None and self.is_complete(channel)

    def remember_secrets(self, *texts: str) -> None:
        """Remember secrets, to redact them in later texts; skip those under 8 characters."""
        self._seen_secrets.update(text for text in texts if len(text) >= 8)

    def seen_secrets(self) -> list[str]:
        """Return the secrets that this process has read so far, to redact them, longest first."""
        return sorted(self._seen_secrets, key=len, reverse=True)

    def values(self, target: Target) -> dict[str, str]:
        """Return the stored values by name; empty if they can't be decrypted."""
        stored = target.transport_settings
        values: dict[str, str] = orjson.loads(stored) if stored else {}
        self.remember_secrets(*(values.get(one.name, "") for one in self.fields if one.is_secret))
        return values

    def masked(self, target: Target) -> dict[str, str]:
        """Return the stored values by name, with secrets masked."""
        values = self.values(target)
        texts = {field: values.get(field.name, "") for field in self.fields if not field.is_flag}
        return {
            field.name: field.mask(text) if field.is_secret else text
            for field, text in texts.items()
        }

    def summary(self, target: Target) -> str:
        return target.address

    def is_complete(self, target: Target) -> bool:
        values = self.values(target)
        return all(values.get(field.name) for field in self.fields)

    def look_up(self, given: Mapping[str, Any]) -> None:
        """Run slow checks, such as DNS, before the transaction; raise `InvalidInput` on failure."""

    def check(self, given: Mapping[str, Any], present: Target | None) -> dict[str, list[str]]:
        """Return the errors of the given settings, by name; `present` is the channel to change."""
        values = self._merged(given, present)
        return {
            field.name: [text] for field in self.fields if (text := _find_mistake(field, values))
        }

    def write(self, target: Target, given: Mapping[str, Any]) -> str | None:
        """Set the target's columns from `given`, without saving; return a new secret, if any."""
        values = self._merged(given, target)
        if values != self.values(target):
            target.transport_settings = orjson.dumps(values).decode()
        return None

    def write_visible(self, target: Target, given: Mapping[str, Any]) -> None:
        """Set the target's columns from `given`, which has no secrets; secrets stay as they are."""
        self.write(target, given)

    def clear(self, target: Target) -> None:
        target.transport_settings = ""

    def _merged(self, given: Mapping[str, Any], present: Target | None) -> dict[str, str]:
        values = {field.name: field.choices[0][0] for field in self.fields if field.choices}
        if present is not None:
            values |= self.values(present)
        values |= {field.name: text for field in self.fields if (text := read_text(field, given))}
        return {field.name: values[field.name] for field in self.fields if field.name in values}


def read_text(field: SettingSpec, given: Mapping[str, Any]) -> str:
    """Return a setting's text without surrounding white space; empty if it is omitted."""
    value = given.get(field.name)
    return value.strip() if isinstance(value, str) else ""


def _find_mistake(field: SettingSpec, values: Mapping[str, str]) -> str:
    value = values.get(field.name, "")
    if field.choices:
        known = [choice for choice, _ in field.choices]
        return "" if value in known else f"One of: {', '.join(known)}."
    if len(value) > MAX_VALUE_LENGTH:
        return f"At most {MAX_VALUE_LENGTH} characters."
    return "" if re.fullmatch(field.pattern, value) else field.mistake or f"Enter {field.noun}."


def find_channel(destination: str) -> Target | None:
    """Return the channel of a destination `key:id`; None if it is gone or has another key."""
    key, _, number = destination.partition(":")
    if not (number.isascii() and number.isdigit() and len(number) < 19):
        return None
    return Target.objects.filter(pk=int(number), address=key).first()
