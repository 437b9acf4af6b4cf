"""Validation of the fields with which a target is to be created or changed."""

import unicodedata
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Any

from django.core.exceptions import ValidationError

from controlplane.accounts.models.people import User, known_time_zone
from controlplane.core.errors import InvalidInput
from controlplane.core.message_templates import SEVERITIES
from controlplane.notify.models.targets import Target
from controlplane.notify.transports import destinations
from controlplane.notify.transports.base import TRANSPORTS

from . import on_call_rotation
from .directory import MAX_DESTINATION_LENGTH
from .team_contacts import KINDS_OF_TARGETS

MAX_NAME_LENGTH, MAX_DESCRIPTION_LENGTH = 80, 300
MAX_MEMBERS, MAX_STEPS = 30, 12
MAX_MINUTES = 7 * 24 * 60

Reference = int | str
"""A target by id (number) or by name (text)."""


@dataclass(frozen=True)
class TargetRequest:
    """The fields requested for a target; `settings` are those of a channel's transport.

    If `secrets_later` is True, a new channel's secrets may be missing; it reaches no one until they
    are entered.
    """

    name: str
    kind: str
    description: str = ""
    user: str = ""
    email: str = ""
    slack_user_id: str = ""
    address: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    members: Sequence[Reference] = ()
    rotation_days: int | None = None
    rotation_starts_at: datetime | None = None
    time_zone: str = ""
    steps: Sequence[tuple[int, Reference]] = ()
    secrets_later: bool = False


@dataclass
class CheckedTarget:
    """The validated columns of a target, with a rotation's members or an escalation's steps."""

    columns: dict[str, Any]
    members: list[Target] = field(default_factory=list)
    steps: list[tuple[int, Target]] = field(default_factory=list)


Errors = defaultdict[str, list[str]]
"""Texts for the user by field; empty if the fields are valid."""


def check_target(request: TargetRequest, present: Target | None) -> CheckedTarget:
    """Validate the requested fields and return them; raise :class:`InvalidInput` with all errors.

    `present` is the target to change, None for a new target.
    """
    errors = Errors(list)
    description = _check_text("description", request.description, MAX_DESCRIPTION_LENGTH, errors)
    columns: dict[str, Any] = {
        "name": _check_name(request.name, present, errors),
        "kind": _check_kind(request.kind, present, errors),
        "description": description,
        **dict.fromkeys(("user", "rotation_days", "rotation_starts_at")),
        **dict.fromkeys(("email", "slack_user_id", "address"), ""),
    }
    checked = CheckedTarget(columns)
    match request.kind:
        case Target.Kind.PERSON:
            columns |= _check_person(request, errors)
        case Target.Kind.CHANNEL:
            columns |= _check_channel(request, present, errors)
        case Target.Kind.ON_CALL:
            columns |= _check_rotation(request, present, errors)
            checked.members = _check_members(request.members, errors)
        case Target.Kind.ESCALATION:
            checked.steps = _check_steps(request.steps, errors)
    if errors:
        raise InvalidInput(errors)
    return checked


def find_target(reference: Reference) -> Target | None:
    if isinstance(reference, str):
        return Target.objects.filter(name=normalize_text(reference)).first()
    return Target.objects.filter(pk=reference).first() if 0 < reference < 2**63 else None


def normalize_text(text: str) -> str:
    """Return the text in Unicode NFC, without NUL characters and surrounding white space."""
    return unicodedata.normalize("NFC", text.replace("\x00", "")).strip()


def _check_name(text: str, present: Target | None, errors: Errors) -> str:
    name = _check_text("name", text, MAX_NAME_LENGTH, errors)
    if not name:
        errors["name"].append("Enter a name that people on duty recognize.")
    taken = Target.objects.filter(name=name).first()
    if taken is not None and taken != present:
        errors["name"].append(f"A target named {name} already exists.")
    if present is not None and present.name in SEVERITIES and name != present.name:
        errors["name"].append(f"{present.name} is the name of a severity and can't be changed.")
    return name


def _check_kind(kind: str, present: Target | None, errors: Errors) -> str:
    if kind not in Target.Kind.values:
        errors["kind"].append(f"One of: {', '.join(Target.Kind.values)}.")
        return kind
    if present is None or present.kind == kind:
        return kind
    if Target.Kind.ESCALATION in (kind, present.kind):
        errors["kind"].append(
            "An escalation can't become another kind, and other kinds can't become an escalation."
        )
    elif kind != Target.Kind.PERSON and present.rotations.exists():
        errors["kind"].append(f"{present.name} is in a rotation, so it must stay a person.")
    for contact in present.team_contacts.select_related("team").order_by("id"):
        if kind not in KINDS_OF_TARGETS[contact.kind]:
            name = contact.team.name
            errors["kind"].append(f"{present.name} is a contact of {name}. Remove it there first.")
    return kind


def _check_text(name: str, text: str, longest: int, errors: Errors) -> str:
    text = normalize_text(text)
    if len(text) > longest:
        errors[name].append(f"At most {longest} characters.")
    if any(unicodedata.category(character) == "Cc" for character in text):
        errors[name].append("No line breaks or control characters.")
        return ""
    return text


def _check_person(request: TargetRequest, errors: Errors) -> dict[str, Any]:
    account = None
    if request.user.strip():
        account = User.objects.filter(username=request.user.strip().replace("\x00", "")).first()
        if account is None:
            errors["user"].append(f"There is no person {request.user.strip()}.")
    columns: dict[str, Any] = {"user": account}
    for transport in TRANSPORTS.values():
        if transport.check_person is None:
            continue
        column = transport.person_column
        address = columns[column] = getattr(request, column).strip()
        if address:
            try:
                transport.check_person(address)
            except ValueError as error:
                errors[column].append(str(error))
            _check_length(column, f"{transport.key}:{address}", errors)
    return columns


def _check_length(name: str, destination: str, errors: Errors) -> None:
    if len(destination) > MAX_DESTINATION_LENGTH:
        prefix_length = len(destination.partition(":")[0]) + 1
        errors[name].append(f"At most {MAX_DESTINATION_LENGTH - prefix_length} characters.")


def _check_channel(
    request: TargetRequest, present: Target | None, errors: Errors
) -> dict[str, Any]:
    address = request.address.strip()
    transport = destinations.transport_for(address)
    for other in destinations.channel_transports():
        for one in other.settings.fields if other.settings and other != transport else ():
            if request.settings.get(one.name) and not (one.is_flag or one.choices):
                errors[one.name].append(f"Only the transport {other.key} has {one.noun}.")
    try:
        if address and transport.check_address:
            address = transport.check_address(address)
        elif address and (address != transport.key or not transport.address_examples):
            raise ValueError
    except ValueError as error:
        errors["address"].append(str(error) or f"Write {destinations.address_forms()}.")
    else:
        _check_length("address", address, errors)
        if transport.settings:
            secret = {one.name for one in transport.settings.fields if one.is_secret}
            for name, texts in transport.settings.check(request.settings, present).items():
                if not (request.secrets_later and name in secret):
                    errors[name] += texts
    return {"address": address}


def _check_rotation(
    request: TargetRequest, present: Target | None, errors: Errors
) -> dict[str, Any]:
    days = on_call_rotation.USUAL_DAYS if request.rotation_days is None else request.rotation_days
    if not 1 <= days <= on_call_rotation.MAX_DAYS:
        errors["rotation_days"].append(f"From 1 to {on_call_rotation.MAX_DAYS} days.")
    zone = request.time_zone.strip() or "UTC"
    try:
        known_time_zone(zone)
    except ValidationError as error:
        errors["time_zone"].append(" ".join(error.messages))
    starts_at = request.rotation_starts_at
    if starts_at is None and request.members:
        starts_at = present.rotation_starts_at if present else None
        if starts_at is None:
            errors["rotation_starts_at"].append(
                "Enter the day and time when the first person starts."
            )
    elif starts_at is not None and not 1971 <= starts_at.year <= 2200:
        errors["rotation_starts_at"].append("This date is out of range.")
    return {"rotation_days": days, "rotation_starts_at": starts_at, "time_zone": zone}


def _check_members(references: Sequence[Reference], errors: Errors) -> list[Target]:
    if len(references) > MAX_MEMBERS:
        errors["members"].append(f"At most {MAX_MEMBERS} people.")
        return []
    found = []
    for reference in references:
        person = find_target(reference)
        if person is None or person.kind != Target.Kind.PERSON:
            errors["members"].append(f"There is no person {reference} among the targets.")
        else:
            found.append(person)
    return found


def _check_steps(
    request: Sequence[tuple[int, Reference]], errors: Errors
) -> list[tuple[int, Target]]:
    if not 1 <= len(request) <= MAX_STEPS:
        errors["steps"].append(f"From 1 to {MAX_STEPS} steps.")
        return []
    minutes = [after for after, _ in request]
    if any(later <= earlier for earlier, later in pairwise(minutes)):
        errors["steps"].append("Each step must come later than the one before.")
    if minutes[0] < 0 or minutes[-1] > MAX_MINUTES:
        errors["steps"].append(f"From 0 to {MAX_MINUTES} minutes: seven days.")
    found = []
    for after, reference in request:
        target = find_target(reference)
        if target is None:
            errors["steps"].append(f"There is no target {reference}.")
        elif target.kind == Target.Kind.ESCALATION:
            errors["steps"].append(f"{target.name} is an escalation itself.")
        else:
            found.append((after, target))
    return found
