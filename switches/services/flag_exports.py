"""Conversion of other tools' flag exports to entries of `switches.yaml`. Pure.

Unleash: an export, or a list of features, with `features`; flags of the type `kill-switch` are
taken. LaunchDarkly: the response of `GET /api/v2/flags/PROJECT`, with `items`; boolean flags are
taken that are permanent or have a tag for kill switches. The entries register keys; whether a flag
is on is not looked at.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from controlplane.core.errors import InvalidInput
from switches.scopes import SCOPES

from . import registration

UNLEASH_TYPE = "kill-switch"
TAGS = frozenset({"kill-switch", "killswitch", "kill_switch"})
MAX_FLAGS = 20_000
MAX_KEY_LENGTH = 120
_INVALID = re.compile(r"[^A-Za-z0-9._-]+")

Flag = Mapping[str, Any]


@dataclass(frozen=True)
class ConvertedFlags:
    """Fields of switches by id, as in `switches.yaml`, and remarks for people."""

    entries: Mapping[str, Mapping[str, str]]
    remarks: tuple[str, ...] = ()


def convert_flags(document: Any, *, scope: str = "feature", tag: str = "") -> ConvertedFlags:
    """Return the switches of an export's kill-switch flags, in `scope`.

    With `tag`, flags of any type with this tag are taken instead. Raise :class:`InvalidInput` for
    an unknown format, without any such flag, and for flags whose keys can't be told apart.
    """
    if scope not in SCOPES or SCOPES[scope].only_key:
        scopes = ", ".join(name for name in SCOPES.names if not SCOPES[name].only_key)
        raise InvalidInput({"scope": [f"Must be one of {scopes}."]})
    flags = [*_list_flags(document, tag)]
    taken = [(name, fields) for name, fields, is_taken in flags if is_taken]
    if not taken:
        message = f"None of {len(flags)} flags is a kill switch. Name a tag that they have."
        raise InvalidInput({"flags": [message]})
    converted = _name_switches(taken, scope)
    if len(taken) == len(flags):
        return converted
    left_out = f"Other flags left out: {len(flags) - len(taken)}."
    return ConvertedFlags(converted.entries, (*converted.remarks, left_out))


def _name_switches(taken: Sequence[tuple[str, dict[str, str]]], scope: str) -> ConvertedFlags:
    """Return the switches of these flags, given by their names and fields."""
    entries: dict[str, dict[str, str]] = {}
    names: dict[str, str] = {}
    errors: dict[str, list[str]] = {}
    remarks: list[str] = []
    for name, fields in taken:
        key = _INVALID.sub("-", name).strip("-")
        switch_id = f"{scope}:{key}"
        if not key or len(key) > MAX_KEY_LENGTH:
            errors[f"flags.{name}"] = [f"Needs a key of 1 to {MAX_KEY_LENGTH} letters and digits."]
            continue
        if switch_id in entries:
            message = f"Would be {switch_id}, as would {names[switch_id]}. Rename one of them."
            errors[f"flags.{name}"] = [message]
            continue
        entries[switch_id], names[switch_id] = _shorten(switch_id, fields, remarks), name
        if key != name:
            remarks.append(f"{name}: became {switch_id}; keys can't have its other characters.")
    if errors:
        raise InvalidInput(errors)
    return ConvertedFlags(dict(sorted(entries.items())), tuple(remarks))


def _list_flags(document: Any, tag: str) -> Iterator[tuple[str, dict[str, str], bool]]:
    """Yield each flag that is not archived: its name, its switch's fields, and if it is taken."""
    kinds = {"features": (_read_unleash, "name"), "items": (_read_launchdarkly, "key")}
    part = next((one for one in kinds if isinstance(_as_mapping(document).get(one), list)), "")
    if not part:
        message = "Must have `features`, as exports of Unleash, or `items`, as of LaunchDarkly."
        raise InvalidInput({"flags": [message]})
    if len(document[part]) > MAX_FLAGS:
        raise InvalidInput({"flags": [f"At most {MAX_FLAGS:,} flags."]})
    read, name_field = kinds[part]
    tags = _list_unleash_tags(document)
    for number, raw in enumerate(document[part]):
        flag = _as_mapping(raw)
        name = flag.get(name_field)
        if not isinstance(name, str) or not name:
            raise InvalidInput({f"{part}.{number}.{name_field}": ["Must be a text."]})
        if flag.get("archived") or flag.get("archivedAt"):
            continue
        own_tags = _texts(flag.get("tags")) | tags.get(name, set())
        fields, is_kill_switch = read(flag, own_tags)
        yield name, fields, tag in own_tags if tag else is_kill_switch


def _read_unleash(flag: Flag, tags: set[str]) -> tuple[dict[str, str], bool]:
    fields = {
        "owner": _name_person(flag.get("createdBy")),
        "description": _text(flag.get("description")),
    }
    return fields, flag.get("type") == UNLEASH_TYPE


def _list_unleash_tags(document: Mapping[str, Any]) -> dict[str, set[str]]:
    """Return the tags of an Unleash export by flag."""
    found: dict[str, set[str]] = {}
    listed = document.get("featureTags")
    for raw in listed if isinstance(listed, list) else ():
        one = _as_mapping(raw)
        name, value = _text(one.get("featureName")), _text(one.get("tagValue") or one.get("value"))
        found.setdefault(name, set()).add(value)
    return found


def _read_launchdarkly(flag: Flag, tags: set[str]) -> tuple[dict[str, str], bool]:
    team = _as_mapping(flag.get("_maintainerTeam"))
    fields = {
        "owner": _text(team.get("name") or team.get("key"))
        or _text(flag.get("maintainerTeamKey"))
        or _name_person(flag.get("_maintainer")),
        "description": _text(flag.get("description")) or _text(flag.get("name")),
    }
    is_boolean = flag.get("kind", "boolean") == "boolean"
    return fields, is_boolean and (flag.get("temporary") is False or bool(tags & TAGS))


def _name_person(raw: Any) -> str:
    """Return the name, or the e-mail address, of a person in either tool's format."""
    if isinstance(raw, str):
        return raw
    person = _as_mapping(raw)
    names = ("name", "email", "username", "firstName")
    return next((_text(person[name]) for name in names if person.get(name)), "")


def _shorten(switch_id: str, fields: Mapping[str, str], remarks: list[str]) -> dict[str, str]:
    """Return the fields that are not empty, cut to the lengths that switches can have."""
    found = {}
    for name, text in fields.items():
        longest = registration.DESCRIPTIVE[name]
        clean = text.replace("\x00", "").strip()
        if len(clean) > longest:
            remarks.append(f"{switch_id}: the {name} was cut to {longest} characters.")
        if clean:
            found[name] = clean[:longest]
    return found


def _as_mapping(raw: Any) -> Mapping[str, Any]:
    return raw if isinstance(raw, Mapping) else {}


def _text(raw: Any) -> str:
    return raw if isinstance(raw, str) else ""


def _texts(raw: Any) -> set[str]:
    """Return tags, which are texts or objects with a value."""
    listed = raw if isinstance(raw, list) else []
    return {_text(one) or _text(_as_mapping(one).get("value")) for one in listed} - {""}
