"""Documents of users and groups: reading of what clients send, and rendering of what they get."""

import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from controlplane.accounts.models.directory import DirectoryGroup, DirectoryUser
from controlplane.accounts.models.people import User
from controlplane.core import canonical
from controlplane.core.json_values import require_readable

from .errors import InvalidRequest
from .patches import Document, flatten, read_values
from .schemas import GROUP, GROUPS, USER, USERS, ResourceType

MAX_NAME_LENGTH = 254
MAX_SHOWN_NAME_LENGTH = 150
MAX_EXTERNAL_ID_LENGTH = 255
MAX_EMAILS = 20
MAX_ID_DIGITS = 18
NAME_PARTS = ("formatted", "familyName", "givenName")


def read_user(body: Mapping[str, Any]) -> Document:
    """Return a user's document with the attributes of the schema, checked.

    Raises :class:`InvalidRequest` or InvalidInput for invalid values.
    """
    sent = _pick(USERS, body)
    name = sent.get("name") or {}
    if not isinstance(name, dict):
        raise InvalidRequest("invalidValue", "name must be an object.")
    parts = {part.casefold(): value for part, value in name.items()}
    return {
        "userName": _read_name(sent, "userName", MAX_NAME_LENGTH),
        "externalId": _read_text(sent, "externalId", MAX_EXTERNAL_ID_LENGTH),
        "displayName": _read_text(sent, "displayName", MAX_SHOWN_NAME_LENGTH),
        "name": {
            part: text
            for part in NAME_PARTS
            if (text := _read_text({part: parts.get(part.casefold())}, part, MAX_NAME_LENGTH))
        },
        "active": _read_flag("active", sent.get("active", True)),
        "emails": _read_emails(sent.get("emails")),
    }


def read_group(body: Mapping[str, Any]) -> Document:
    """Return a group's document; `members` are user ids, each once.

    Raises :class:`InvalidRequest` or InvalidInput for invalid values.
    """
    sent = _pick(GROUPS, body)
    attribute = GROUPS.find("members")
    assert attribute is not None  # noqa: S101 - it is in the schema
    members = read_values(attribute, sent["members"]) if sent.get("members") is not None else []
    ids = dict.fromkeys(_read_member(each) for each in members)
    return {
        "displayName": _read_name(
            sent, "displayName", MAX_EXTERNAL_ID_LENGTH, normalize_group_name
        ),
        "externalId": _read_text(sent, "externalId", MAX_EXTERNAL_ID_LENGTH),
        "members": list(ids),
    }


def parse_id(text: str) -> int | None:
    """Return the id of a resource; None if the text can't be one."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= MAX_ID_DIGITS else None


def choose_email(document: Mapping[str, Any]) -> str:
    """Return the primary address, else that for work, else the first; "" without addresses."""
    emails = document.get("emails") or []
    ranked = sorted(emails, key=lambda each: (not each.get("primary"), each.get("type") != "work"))
    return str(ranked[0]["value"]) if ranked else ""


def choose_display_name(document: Mapping[str, Any]) -> str:
    """Return the displayName, else the name; "" if both are missing."""
    name = document.get("name") or {}
    joined = f"{name.get('givenName', '')} {name.get('familyName', '')}".strip()
    shown = document.get("displayName") or name.get("formatted") or joined
    return str(shown)[:MAX_SHOWN_NAME_LENGTH]


def render_user(row: DirectoryUser, groups: Iterable[tuple[int, str]], base: str) -> Document:
    """Return the representation of a user; `groups` are pairs of id and name."""
    attributes, user = row.attributes, row.user
    document: Document = {
        "schemas": [USER],
        "id": str(user.pk),
        **({"externalId": row.external_id} if row.external_id else {}),
        "userName": attributes["userName"],
        **({"name": attributes["name"]} if attributes.get("name") else {}),
        **({"displayName": user.display_name} if user.display_name else {}),
        "active": user.is_active,
        **({"emails": attributes["emails"]} if attributes.get("emails") else {}),
    }
    found = [
        {"value": str(pk), "$ref": f"{base}/Groups/{pk}", "display": name} for pk, name in groups
    ]
    if found:
        document["groups"] = found
    version = _format_version(document)
    path = f"Users/{user.pk}"
    return {**document, "meta": _render_meta("User", row, path, version, base)}


def render_group(
    row: DirectoryGroup, members: Sequence[tuple[int, str]] | None, base: str
) -> Document:
    """Return the representation of a group; `members` are pairs of id and name, None: left out."""
    document: Document = {
        "schemas": [GROUP],
        "id": str(row.pk),
        **({"externalId": row.external_id} if row.external_id else {}),
        "displayName": row.name,
    }
    if members:
        document["members"] = [
            {"value": str(pk), "$ref": f"{base}/Users/{pk}", "display": name}
            for pk, name in members
        ]
    return {
        **document,
        "meta": _render_meta("Group", row, f"Groups/{row.pk}", version_of_group(row), base),
    }


def version_of_group(row: DirectoryGroup) -> str:
    return _format_version([row.pk, row.changed_at])


def select_attributes(
    document: Document, wanted: Sequence[str], unwanted: Sequence[str]
) -> Document:
    """Return the document with only the wanted attributes, or else without the unwanted ones.

    Names are `attribute` or `attribute.sub`; `schemas` and `id` are always there.
    """
    found = {}
    for name, value in document.items():
        subs = _find_subs(name, wanted or unwanted)
        if name in {"schemas", "id"}:
            found[name] = value
        elif wanted:
            if subs is not None:
                found[name] = _filter_parts(value, subs, keep=True) if subs else value
        elif subs is None:
            found[name] = value
        elif subs:
            found[name] = _filter_parts(value, subs, keep=False)
    return found


def _find_subs(name: str, listed: Sequence[str]) -> set[str] | None:
    """Return the listed sub-attributes of an attribute; empty: all of it, None: none of it."""
    paths = [path.casefold().partition(".") for path in listed]
    subs = {sub for first, _, sub in paths if first == name.casefold()}
    return None if not subs else set() if "" in subs else subs


def _filter_parts(value: Any, subs: set[str], *, keep: bool) -> Any:
    if isinstance(value, list):
        return [_filter_parts(each, subs, keep=keep) for each in value]
    if not isinstance(value, dict):
        return value
    return {name: one for name, one in value.items() if (name.casefold() in subs) is keep}


def _render_meta(
    kind: str, row: DirectoryUser | DirectoryGroup, path: str, version: str, base: str
) -> Document:
    return {
        "resourceType": kind,
        "created": _format(row.created_at),
        "lastModified": _format(row.changed_at),
        "location": f"{base}/{path}",
        "version": version,
    }


def _format_version(state: Any) -> str:
    """Return a weak entity tag."""
    return f'W/"{canonical.digest(state)[:16]}"'


def _format(moment: datetime) -> str:
    return canonical.timestamp(moment)


def _pick(resource: ResourceType, body: Mapping[str, Any]) -> Document:
    """Return the attributes of the schema, by their right names; others are ignored."""
    found = {}
    for name, value in flatten(body):
        attribute = resource.find(name)
        if attribute is not None:
            found[attribute.name] = value
    return found


def _read_text(document: Mapping[str, Any], name: str, most: int) -> str:
    value = document.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InvalidRequest("invalidValue", f"{name} must be a text.")
    text = value.strip()
    if len(text) > most:
        raise InvalidRequest("invalidValue", f"{name} can have at most {most} characters.")
    require_readable(**{name: text})
    return text


def normalize_group_name(name: str) -> str:
    """Return a group's name in the form in which teams store the names of their groups."""
    return unicodedata.normalize("NFC", name)


def _read_name(
    document: Mapping[str, Any],
    name: str,
    most: int,
    normalize: Callable[[str], str] = User.normalize_username,
) -> str:
    text = normalize(_read_text(document, name, most))
    if not text or len(text) > most:
        raise InvalidRequest("invalidValue", f"{name} must have 1 to {most} characters.")
    return text


def _read_flag(name: str, value: Any) -> bool:
    # Entra ID sends texts such as "False" unless told otherwise.
    if isinstance(value, str) and value.casefold() in {"true", "false"}:
        return value.casefold() == "true"
    if not isinstance(value, bool):
        raise InvalidRequest("invalidValue", f"{name} must be true or false.")
    return value


def _read_emails(sent: Any) -> list[Document]:
    attribute = USERS.find("emails")
    assert attribute is not None  # noqa: S101 - it is in the schema
    emails = read_values(attribute, sent) if sent is not None else []
    if len(emails) > MAX_EMAILS:
        raise InvalidRequest("invalidValue", f"A user can have at most {MAX_EMAILS} emails.")
    found = []
    for each in emails:
        address = _read_text(each, "value", MAX_NAME_LENGTH)
        kind = _read_text(each, "type", MAX_SHOWN_NAME_LENGTH)
        flags = {"primary": _read_flag("primary", each["primary"])} if "primary" in each else {}
        if address:
            found.append({"value": address, **({"type": kind} if kind else {}), **flags})
    if sum(bool(each.get("primary")) for each in found) > 1:
        raise InvalidRequest("invalidValue", "Only one of the emails can be primary.")
    return found


def _read_member(value: Mapping[str, Any]) -> int:
    found = parse_id(str(value.get("value", "")))
    if found is None:
        raise InvalidRequest("invalidValue", "Members need a value, which is the id of a user.")
    return found
