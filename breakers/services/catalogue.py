"""Naming services, stores and event channels: who they are, what is lost without them."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from django.db import models, transaction

from breakers import names, publication
from breakers.models import Channel, Service
from breakers.policies import values
from breakers.policies.addresses import probe_problem, web_problem
from breakers.services import registry
from breakers.services.registry import Record
from controlplane.core.actors import Actor
from controlplane.core.audit import services as audit
from controlplane.core.errors import Conflict, InvalidInput

LEVELS = (1, 2, 3)
MOST_LISTED = 50
LONGEST = {
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

Entry = Service | Channel


def put_service(
    *,
    slug: str,
    fields: Mapping[str, Any],
    actor: Actor,
    now: datetime,
    record: Record = audit.record,
) -> Service:
    """Register a service, or have it say exactly this from now on.

    Raises :class:`Forbidden` or :class:`InvalidInput`. What is the same already changes nothing.
    """
    actor.require(registry.SCOPE)
    if not names.is_slug(slug):
        said = f"Must be 1 to {names.LONGEST} of the letters, digits and signs a-z 0-9 -"
        raise InvalidInput({"slug": [said]})
    checked = _service(slug, fields)
    with transaction.atomic():
        publication.lock()
        row = Service.objects.select_for_update().filter(pk=slug).first()
        told = _write(row, Service(slug=slug), checked, "service", SERVICE_FIELDS, now)
        if told:
            record(**told, actor=actor, now=now)
        return Service.objects.get(pk=slug)


def put_channel(
    *,
    name: str,
    fields: Mapping[str, Any],
    actor: Actor,
    now: datetime,
    record: Record = audit.record,
) -> Channel:
    """Register a stream's consumer or a socket, or have it say exactly this from now on.

    Raises :class:`Forbidden` or :class:`InvalidInput`.
    """
    actor.require(registry.SCOPE)
    checked = _channel(name, fields)
    with transaction.atomic():
        publication.lock()
        row = Channel.objects.select_for_update().filter(pk=name).first()
        told = _write(row, Channel(name=name), checked, "channel", CHANNEL_FIELDS, now)
        if told:
            record(**told, actor=actor, now=now)
        return Channel.objects.get(pk=name)


def require_new(slug: str) -> None:
    """Raise :class:`Conflict` if the service is registered; nobody registers it meanwhile."""
    publication.lock()
    if is_known(slug):
        raise Conflict(f"{slug} is registered already; change it with PUT.")


def is_known(slug: str) -> bool:
    return names.is_slug(slug) and Service.objects.filter(pk=slug).exists()


def picture(row: models.Model, fields: tuple[str, ...]) -> dict[str, Any]:
    """What the audit trail keeps of a service or channel."""
    return {field: getattr(row, field) for field in fields}


def _write(
    row: Entry | None,
    new: Entry,
    checked: dict[str, Any],
    kind: str,
    fields: tuple[str, ...],
    now: datetime,
) -> dict[str, Any]:
    """Write the row; returns what the audit trail is told, nothing if it is the same already."""
    before = picture(row, fields) if row is not None else None
    if before == checked:
        return {}
    written = row if row is not None else new
    for field, value in checked.items():
        setattr(written, field, value)
    written.changed_at = now
    written.save(force_insert=row is None)
    return {
        "action": f"{kind}.registered" if before is None else f"{kind}.changed",
        "target": f"{kind}:{written.pk}"[:200],
        "before": before,
        "after": checked,
    }


def _service(slug: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    errors: values.Errors = {}
    values.refuse_unknown("", fields, SERVICE_FIELDS, errors)
    found = _texts(fields, SERVICE_TEXTS, errors)
    found["name"] = found["name"] or slug
    for field in SERVICE_LISTS:
        found[field] = _list(field, fields.get(field), errors)
    if wrong := [one for one in found["used_by"] if not names.is_slug(one)]:
        values.put(errors, "used_by", f"{wrong[0][:80]!r} is no service's slug.")
    kind = fields.get("kind") or Service.Kind.SERVICE.value
    found["kind"] = values.choice("kind", kind, tuple(Service.Kind.values), errors)
    found["level"] = values.whole("level", fields.get("level", 1), 1, 3, errors)
    found["retry"] = _retry(fields.get("retry"), errors)
    _check(errors, "runbook_url", found["runbook_url"], web_problem)
    _check(errors, "probe_url", found["probe_url"], probe_problem)
    if errors:
        raise InvalidInput(errors)
    return found


def _channel(name: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    errors: values.Errors = {}
    values.refuse_unknown("", fields, CHANNEL_FIELDS, errors)
    if not values.text("name", name, 200, errors):
        values.put(errors, "name", "Give it a name.")
    found = _texts(fields, CHANNEL_TEXTS, errors)
    kind = fields.get("kind")
    found["kind"] = values.choice("kind", kind, tuple(Channel.Kind.values), errors)
    if errors:
        raise InvalidInput(errors)
    return found


def _texts(
    fields: Mapping[str, Any], wanted: tuple[str, ...], errors: values.Errors
) -> dict[str, Any]:
    return {
        field: values.text(field, fields.get(field), LONGEST[field], errors) for field in wanted
    }


def _list(field: str, given: Any, errors: values.Errors) -> list[str]:
    """Texts, each once."""
    if given is None:
        return []
    if not isinstance(given, list) or len(given) > MOST_LISTED:
        values.put(errors, field, f"Must be a list of at most {MOST_LISTED}.")
        return []
    found = [values.text(f"{field}.{place}", one, 300, errors) for place, one in enumerate(given)]
    return [one for one in dict.fromkeys(found) if one]


def _retry(given: Any, errors: values.Errors) -> dict[str, Any]:
    """How a worker tries again; `delays_seconds` are its waits, `then` where it goes at last."""
    if not given:
        return {}
    if not isinstance(given, Mapping):
        values.put(errors, "retry", "Must be an object, or null.")
        return {}
    known = ("max_retries", "delays_seconds", "retry_on", "never", *RETRY_TEXTS)
    values.refuse_unknown("retry", given, known, errors)
    found: dict[str, Any] = {
        "max_retries": values.whole("retry.max_retries", given.get("max_retries"), 0, 100, errors)
    }
    delays = given.get("delays_seconds") or []
    if not isinstance(delays, list) or len(delays) > MOST_LISTED:
        values.put(errors, "retry.delays_seconds", f"Must be a list of at most {MOST_LISTED}.")
    else:
        found["delays_seconds"] = [
            values.number(f"retry.delays_seconds.{place}", one, 0, 86_400, errors)
            for place, one in enumerate(delays)
        ]
    for field in ("retry_on", "never"):
        found[field] = _list(f"retry.{field}", given.get(field), errors)
    for field, longest in RETRY_TEXTS.items():
        found[field] = values.text(f"retry.{field}", given.get(field), longest, errors)
    return found


def _check(errors: values.Errors, field: str, address: str, problem: Callable[[str], str]) -> None:
    if address and (said := problem(address)):
        values.put(errors, field, said)
