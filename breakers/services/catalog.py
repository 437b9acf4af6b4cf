"""Registration and validation of services and event channels."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from django.db import transaction

from breakers import names, publication
from breakers.models import Channel, Service
from breakers.policies.addresses import find_probe_problem
from controlplane.core import json_values
from controlplane.core.actors import Actor
from controlplane.core.audit import services as audit
from controlplane.core.errors import Conflict, InvalidInput

from .permissions import require_edit

MAX_LISTED = 50
WRITTEN_AT_ONCE = 500
MAX_LENGTHS = {
    "name": 120, "owner": 120, "runbook_url": 500, "notes": 4000, "failure_mode": 2000,
    "fallback": 4000, "impact": 2000, "probe_url": 500, "stream": 200, "producer": 60,
    "consumer": 60, "group": 120, "protocol": 60, "purpose": 200, "reach": 200,
}  # fmt: skip
RETRY_TEXTS = {"backoff": 60, "then": 200, "notes": 1000}
SERVICE_TEXTS = (
    "name", "owner", "runbook_url", "notes", "failure_mode", "fallback", "impact", "probe_url",
)  # fmt: skip
SERVICE_LISTS = ("loses", "keeps", "used_by")
SERVICE_FIELDS = (*SERVICE_TEXTS, *SERVICE_LISTS, "kind", "level", "retry")
CHANNEL_TEXTS = (
    "stream", "producer", "consumer", "group", "protocol", "purpose", "reach", "failure_mode",
    "fallback", "impact",
)  # fmt: skip
CHANNEL_FIELDS = (*CHANNEL_TEXTS, "kind")

State = dict[str, Any]
Entry = TypeVar("Entry", Service, Channel)


@dataclass(frozen=True)
class Catalog(Generic[Entry]):
    """The services or the channels in the registry: their model, key and editable fields."""

    kind: str
    model: type[Entry]
    key: str
    fields: tuple[str, ...]

    def list_states(self) -> dict[str, State]:
        """Return the audited fields of all registered entries by key."""
        return {row.pk: self.audit_state(row) for row in self.model._default_manager.all()}

    def audit_state(self, row: Entry) -> State:
        """Return the fields of an entry that the audit trail records."""
        return {field: getattr(row, field) for field in self.fields}

    def row(self, name: str, state: State, now: datetime) -> Entry:
        return self.model(**{self.key: name, **state, "changed_at": now})

    def write(self, states: Mapping[str, State], now: datetime) -> None:
        """Insert or update entries; `states` maps their keys to their fields."""
        self.model._default_manager.bulk_create(
            [self.row(name, one, now) for name, one in states.items()],
            update_conflicts=True,
            unique_fields=[self.key],
            update_fields=[*self.fields, "changed_at"],
            batch_size=WRITTEN_AT_ONCE,
        )

    def audit_change(self, name: str, before: State | None, after: State) -> State:
        """Return action, target, before and after of the audit row about a change."""
        return {
            "action": f"{self.kind}.registered" if before is None else f"{self.kind}.changed",
            "target": f"{self.kind}:{name}"[:200],
            "before": before,
            "after": after,
        }

    def remove(self, keys: Collection[str]) -> list[State]:
        """Delete entries, and return action, target and before of their audit rows."""
        rows = list(self.model._default_manager.filter(pk__in=keys).order_by("pk"))
        self.model._default_manager.filter(pk__in=[row.pk for row in rows]).delete()
        return [
            {
                "action": f"{self.kind}.removed",
                "target": f"{self.kind}:{row.pk}"[:200],
                "before": self.audit_state(row),
            }
            for row in rows
        ]

    def put_entry(self, name: str, state: State, *, actor: Actor, now: datetime) -> Entry:
        rows = self.model._default_manager
        present = rows.filter(pk=name).first()
        if present is not None and self.audit_state(present) == state:
            return present
        with transaction.atomic():
            publication.lock()
            require_edit(actor, f"{self.kind}:{name}")
            present = rows.filter(pk=name).first()
            before = None if present is None else self.audit_state(present)
            row = self.row(name, state, now)
            if before != state:
                row.save(force_insert=before is None, force_update=before is not None)
                audit.record(**self.audit_change(name, before, state), actor=actor, now=now)
            return rows.get(pk=name)


SERVICES = Catalog("service", Service, "slug", SERVICE_FIELDS)
CHANNELS = Catalog("channel", Channel, "name", CHANNEL_FIELDS)


def put_service(*, slug: str, fields: Mapping[str, Any], actor: Actor, now: datetime) -> Service:
    """Register a service or replace its fields.

    Raise :class:`Forbidden` or :class:`InvalidInput`.
    """
    require_edit(actor, names.service_resource(slug))
    return SERVICES.put_entry(slug, validate_service(slug, fields), actor=actor, now=now)


def require_new(slug: str) -> None:
    """Raise :class:`Conflict` if the service is registered; lock the registry until commit."""
    publication.lock()
    if is_known(slug):
        raise Conflict(f"{slug} is already registered. Use PUT to change it.")


def is_known(slug: str) -> bool:
    return names.is_slug(slug) and Service.objects.filter(pk=slug).exists()


def validate_service(slug: str, fields: Mapping[str, Any]) -> State:
    """Return all fields of a service, with defaults filled in. Raise :class:`InvalidInput`."""
    if not names.is_slug(slug):
        raise InvalidInput({"slug": [names.SLUG_RULE]})
    errors: json_values.Errors = {}
    json_values.refuse_unknown("", fields, SERVICE_FIELDS, errors)
    found = _read_texts(fields, SERVICE_TEXTS, errors)
    found["name"] = found["name"] or slug
    for field in SERVICE_LISTS:
        found[field] = _read_list(field, fields.get(field), errors)
    if wrong := [one for one in found["used_by"] if not names.is_slug(one)]:
        json_values.add_error(errors, "used_by", f"{wrong[0][:80]!r} is not the slug of a service.")
    kind = fields.get("kind") or Service.Kind.SERVICE.value
    found["kind"] = json_values.read_choice("kind", kind, tuple(Service.Kind.values), errors)
    found["level"] = json_values.read_integer("level", fields.get("level", 1), 1, 3, errors)
    found["retry"] = _read_retry(fields.get("retry"), errors)
    json_values.check_web_url("runbook_url", found["runbook_url"], errors)
    if found["probe_url"] and (message := find_probe_problem(found["probe_url"])):
        json_values.add_error(errors, "probe_url", message)
    if errors:
        raise InvalidInput(errors)
    return found


def validate_channel(name: str, fields: Mapping[str, Any]) -> State:
    """Return all fields of a channel, with defaults filled in. Raise :class:`InvalidInput`."""
    errors: json_values.Errors = {}
    json_values.refuse_unknown("", fields, CHANNEL_FIELDS, errors)
    if not json_values.read_text("name", name, 200, errors):
        json_values.add_error(errors, "name", "Enter a name.")
    found = _read_texts(fields, CHANNEL_TEXTS, errors)
    kind = fields.get("kind")
    found["kind"] = json_values.read_choice("kind", kind, tuple(Channel.Kind.values), errors)
    if errors:
        raise InvalidInput(errors)
    return found


def _read_texts(
    fields: Mapping[str, Any], keys: tuple[str, ...], errors: json_values.Errors
) -> dict[str, Any]:
    return {
        field: json_values.read_text(field, fields.get(field), MAX_LENGTHS[field], errors)
        for field in keys
    }


def _read_list(field: str, given: Any, errors: json_values.Errors) -> list[str]:
    if given is None:
        return []
    if not isinstance(given, list) or len(given) > MAX_LISTED:
        json_values.add_error(errors, field, f"Must be a list of at most {MAX_LISTED}.")
        return []
    found = [
        json_values.read_text(f"{field}.{place}", one, 300, errors)
        for place, one in enumerate(given)
    ]
    return [one for one in dict.fromkeys(found) if one]


def _read_retry(given: Any, errors: json_values.Errors) -> dict[str, Any]:
    if not given:
        return {}
    if not isinstance(given, Mapping):
        json_values.add_error(errors, "retry", "Must be an object, or null.")
        return {}
    known = ("max_retries", "delays_seconds", "retry_on", "never", *RETRY_TEXTS)
    json_values.refuse_unknown("retry", given, known, errors)
    found: dict[str, Any] = {}
    max_retries = given.get("max_retries")
    found["max_retries"] = json_values.read_integer(
        "retry.max_retries", max_retries, 0, 100, errors
    )
    delays = given.get("delays_seconds") or []
    if not isinstance(delays, list) or len(delays) > MAX_LISTED:
        message = f"Must be a list of at most {MAX_LISTED}."
        json_values.add_error(errors, "retry.delays_seconds", message)
    else:
        found["delays_seconds"] = [
            json_values.read_number(f"retry.delays_seconds.{place}", one, 0, 86_400, errors)
            for place, one in enumerate(delays)
        ]
    for field in ("retry_on", "never"):
        found[field] = _read_list(f"retry.{field}", given.get(field), errors)
    for field, longest in RETRY_TEXTS.items():
        found[field] = json_values.read_text(f"retry.{field}", given.get(field), longest, errors)
    return found
