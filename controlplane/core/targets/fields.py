"""What a target is asked to be, checked field by field."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import validate_email

from controlplane.accounts.people.models import User, known_time_zone
from controlplane.core.errors import InvalidInput
from controlplane.core.targets import duty
from controlplane.core.targets.addresses import SLACK_PLACE, SLACK_USER
from controlplane.core.targets.directory import MAX_DESTINATION_LENGTH
from controlplane.core.targets.models import Target
from controlplane.core.targets.reach import SEVERITIES

MAX_NAME_LENGTH, MAX_DESCRIPTION_LENGTH, MAX_URL_LENGTH = 80, 300, 500
MAX_MEMBERS, MAX_STEPS = 30, 12
MAX_MINUTES = 7 * 24 * 60
ADDRESSES = "slack, slack:#name, slack:C024BE91L, email:ops@example.org or webhook"

Reference = int | str
"""A target by its id (a number) or its name (a text)."""


@dataclass(frozen=True)
class Asked:
    """A target as somebody wants it. `webhook_url` None leaves the present one."""

    name: str
    kind: str
    description: str = ""
    user: str = ""
    email: str = ""
    slack_user_id: str = ""
    address: str = ""
    webhook_url: str | None = None
    new_secret: bool = False
    members: Sequence[Reference] = ()
    rotation_days: int | None = None
    rotation_starts_at: datetime | None = None
    time_zone: str = ""
    steps: Sequence[tuple[int, Reference]] = ()


@dataclass
class Checked:
    """The columns to write, and the rows beside them, if no error was found."""

    columns: dict[str, Any]
    members: list[Target] = field(default_factory=list)
    steps: list[tuple[int, Target]] = field(default_factory=list)


class Errors(dict[str, list[str]]):
    def add(self, name: str, text: str) -> None:
        self.setdefault(name, []).append(text)


def check(asked: Asked, present: Target | None) -> Checked:
    """The checked fields; raises :class:`InvalidInput` with all that is wrong with them."""
    errors = Errors()
    columns: dict[str, Any] = {
        "name": _name(asked.name, present, errors),
        "kind": _kind(asked.kind, present, errors),
        "description": _text("description", asked.description, MAX_DESCRIPTION_LENGTH, errors),
        "user": None,
        "email": "",
        "slack_user_id": "",
        "address": "",
        "rotation_days": None,
        "rotation_starts_at": None,
    }
    checked = Checked(columns)
    match asked.kind:
        case Target.Kind.PERSON:
            columns |= _person(asked, errors)
        case Target.Kind.CHANNEL:
            columns |= _channel(asked, present, errors)
        case Target.Kind.ON_CALL:
            columns |= _rotation(asked, present, errors)
            checked.members = _members(asked.members, errors)
        case Target.Kind.ESCALATION:
            checked.steps = _steps(asked.steps, errors)
    if errors:
        raise InvalidInput(errors)
    return checked


def find(reference: Reference) -> Target | None:
    """A target by id or by name."""
    if isinstance(reference, str):
        return Target.objects.filter(name=plain(reference)).first()
    return Target.objects.filter(pk=reference).first() if 0 < reference < 2**63 else None


def plain(text: str) -> str:
    """One spelling for what looks the same: composed, without white space around it."""
    return unicodedata.normalize("NFC", text.replace("\x00", "")).strip()


def _name(text: str, present: Target | None, errors: Errors) -> str:
    name = _text("name", text, MAX_NAME_LENGTH, errors)
    if not name:
        errors.add("name", "Give it a name, as people on duty would say it.")
    taken = Target.objects.filter(name=name).first()
    if taken is not None and taken != present:
        errors.add("name", f"There is a target {name} already.")
    if present is not None and present.name in SEVERITIES and name != present.name:
        errors.add("name", f"{present.name} is the name of a severity and stays.")
    return name


def _kind(kind: str, present: Target | None, errors: Errors) -> str:
    if kind not in Target.Kind.values:
        errors.add("kind", f"One of: {', '.join(Target.Kind.values)}.")
        return kind
    if present is None or present.kind == kind:
        return kind
    if Target.Kind.ESCALATION in (kind, present.kind):
        errors.add("kind", "An escalation stays one, and nothing else becomes one.")
    elif kind != Target.Kind.PERSON and present.rotations.exists():
        errors.add("kind", f"{present.name} is in a rotation, so it has to stay a person.")
    return kind


def _text(name: str, text: str, longest: int, errors: Errors) -> str:
    text = plain(text)
    if len(text) > longest:
        errors.add(name, f"At most {longest} characters.")
    if any(unicodedata.category(character) == "Cc" for character in text):
        errors.add(name, "No line breaks or control characters.")
        return ""
    return text


def _person(asked: Asked, errors: Errors) -> dict[str, Any]:
    account = None
    if asked.user.strip():
        account = User.objects.filter(username=asked.user.strip().replace("\x00", "")).first()
        if account is None:
            errors.add("user", f"There is nobody named {asked.user.strip()}.")
    slack = asked.slack_user_id.strip()
    if slack and not SLACK_USER.fullmatch(slack):
        errors.add("slack_user_id", "A Slack member id, as U024BE7LH; their profile has it.")
    email = _email("email", asked.email.strip(), errors)
    return {"user": account, "email": email, "slack_user_id": slack}


def _email(name: str, email: str, errors: Errors) -> str:
    if not email:
        return ""
    try:
        validate_email(email)
    except ValidationError:
        errors.add(name, "Not an e-mail address.")
    if len(f"email:{email}") > MAX_DESTINATION_LENGTH:
        errors.add(name, f"At most {MAX_DESTINATION_LENGTH - len('email:')} characters.")
    return email


def _channel(asked: Asked, present: Target | None, errors: Errors) -> dict[str, Any]:
    address = asked.address.strip()
    has_url = bool(asked.webhook_url or (asked.webhook_url is None and _url_of(present)))
    if address == "webhook":
        if not has_url:
            errors.add("webhook_url", "Where to send to: an https:// address.")
        return {"address": address}
    if asked.webhook_url:
        errors.add("webhook_url", "Only an address of webhook has a URL.")
    kind, _, place = address.partition(":")
    if kind == "email" and place:
        return {"address": f"email:{_email('address', place, errors)}"}
    if address and address != "slack" and not SLACK_PLACE.fullmatch(address):
        errors.add("address", f"Write {ADDRESSES}.")
    return {"address": address}


def _url_of(present: Target | None) -> str:
    return present.webhook_url if present is not None else ""


def _rotation(asked: Asked, present: Target | None, errors: Errors) -> dict[str, Any]:
    days = duty.USUAL_DAYS if asked.rotation_days is None else asked.rotation_days
    if not 1 <= days <= duty.MAX_DAYS:
        errors.add("rotation_days", f"From 1 to {duty.MAX_DAYS} days.")
    zone = asked.time_zone.strip() or "UTC"
    try:
        known_time_zone(zone)
    except ValidationError as error:
        errors.add("time_zone", " ".join(error.messages))
    starts_at = asked.rotation_starts_at
    if starts_at is None and asked.members:
        starts_at = present.rotation_starts_at if present else None
        if starts_at is None:
            errors.add("rotation_starts_at", "When the first of them begins: day and time.")
    elif starts_at is not None and not 1971 <= starts_at.year <= 2200:
        errors.add("rotation_starts_at", "A day of this century.")
    return {"rotation_days": days, "rotation_starts_at": starts_at, "time_zone": zone}


def _members(references: Sequence[Reference], errors: Errors) -> list[Target]:
    if len(references) > MAX_MEMBERS:
        errors.add("members", f"At most {MAX_MEMBERS} people.")
        return []
    found = []
    for reference in references:
        person = find(reference)
        if person is None or person.kind != Target.Kind.PERSON:
            errors.add("members", f"There is no person {reference} among the targets.")
        else:
            found.append(person)
    return found


def _steps(asked: Sequence[tuple[int, Reference]], errors: Errors) -> list[tuple[int, Target]]:
    if not 1 <= len(asked) <= MAX_STEPS:
        errors.add("steps", f"From 1 to {MAX_STEPS} steps.")
        return []
    minutes = [after for after, _ in asked]
    if any(later <= earlier for earlier, later in pairwise(minutes)):
        errors.add("steps", "Each step comes later than the one before it.")
    if minutes[0] < 0 or minutes[-1] > MAX_MINUTES:
        errors.add("steps", f"From 0 to {MAX_MINUTES} minutes: seven days.")
    found = []
    for after, reference in asked:
        target = find(reference)
        if target is None:
            errors.add("steps", f"There is no target {reference}.")
        elif target.kind == Target.Kind.ESCALATION:
            errors.add("steps", f"{target.name} is an escalation itself.")
        else:
            found.append((after, target))
    return found
