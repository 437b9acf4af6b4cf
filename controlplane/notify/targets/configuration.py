"""The configuration file `targets.yaml`: targets, routes, and the contacts of teams."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import transaction

from controlplane.core import json_values
from controlplane.core.configuration import schemas
from controlplane.core.configuration.comparison import Comparison, drop_empty
from controlplane.core.configuration.files import read_document, read_entries, read_list
from controlplane.core.configuration.readers import (
    NEW,
    SAME,
    Document,
    EntryChange,
    Loaded,
    LoadOptions,
)
from controlplane.core.configuration.schemas import Schema
from controlplane.core.configuration.services import find_manual_edits
from controlplane.core.errors import InvalidInput
from controlplane.core.json_values import Errors
from controlplane.core.message_templates import SEVERITIES
from controlplane.core.outbox.escalation import Escalation
from controlplane.core.scopes import SCOPES
from controlplane.notify.models.targets import Route, Target

from . import contact_entries, directory, fields, on_call_rotation, services, target_entries
from .resources import target_settings

FILE, TARGETS, ROUTES, CONTACTS = "targets.yaml", "targets", "routes", "contacts"
ACTIONS = ("target.created", "target.changed", "target.removed")
ROUTE_FIELDS = ("event", "scope", "severity", "target")
PAGE = "Notifications"


def load_file(texts: Mapping[str, str], options: LoadOptions) -> Loaded:
    """Create or change the targets of the file and contacts of teams, and add its routes.

    A dry run makes the changes and rolls them back, because entries refer to each other.
    """
    errors: Errors = {}
    document = read_document(FILE, texts[FILE], (TARGETS, ROUTES, CONTACTS), errors)
    entries = read_entries(FILE, document, TARGETS, errors)
    routes = read_list(FILE, document, ROUTES, errors)
    contacts = read_entries(FILE, document, CONTACTS, errors)
    edited = find_manual_edits(ACTIONS)
    with transaction.atomic():
        services.lock_targets()
        found = Comparison(
            "target", FILE, _read_entries(), options, edited, errors, audit_prefix="target:"
        ).compare_all(entries, _read_entry)
        audit_rows = _write_targets(found, options.now)
        added = _add_routes(routes, options.now)
        found.require_valid()
        teams = contact_entries.load_entries(FILE, contacts, options, errors)
        remarks = _list_missing_secrets(entries)
        if options.dry_run:
            transaction.set_rollback(True)
    return found.build_result(audit_rows) + added + teams + Loaded(remarks=remarks)


def export_documents() -> dict[str, Document]:
    entries = {name: target_entries.shorten(one) for name, one in sorted(_read_entries().items())}
    rows = Route.objects.select_related("target").order_by(
        "event", "scope", "severity", "target__name"
    )
    routes = [
        drop_empty(
            {
                "event": row.event,
                "scope": row.scope,
                "severity": row.severity,
                "target": row.target.name,
            }
        )
        for row in rows
    ]
    contacts = contact_entries.export_entries()
    return {FILE: {TARGETS: entries, ROUTES: routes, **({CONTACTS: contacts} if contacts else {})}}


def build_schema() -> Schema:
    visible = {
        one.name: schemas.choice([key for key, _ in one.choices])
        if one.choices
        else schemas.text(help=one.help_text)
        for one in target_entries.visible_fields()
    }
    step = {"after_minutes": schemas.whole(0, fields.MAX_MINUTES), "target": schemas.text()}
    target = schemas.fields(
        {
            "kind": schemas.choice(Target.Kind.values),
            "description": schemas.text(fields.MAX_DESCRIPTION_LENGTH),
            "user": schemas.text(help="Account of a person, whose e-mail and Slack are used."),
            "email": schemas.text(help="For a person without an account."),
            "slack_user_id": schemas.text(help="For a person without an account."),
            "address": schemas.text(help="Of a channel: slack:#ops, pagerduty, webhook."),
            "settings": schemas.fields(visible, help="Of a channel, without secrets."),
            "members": schemas.list_of(schemas.text(), fields.MAX_MEMBERS, "People of a rotation."),
            "rotation_days": schemas.whole(1, on_call_rotation.MAX_DAYS),
            "rotation_starts_at": schemas.text(help="2026-11-21T09:00:00Z"),
            "time_zone": schemas.text(help="Asia/Seoul"),
            "steps": schemas.list_of(
                schemas.fields(step, tuple(step)), fields.MAX_STEPS, "Of an escalation."
            ),
        },
        ("kind",),
    )
    route = schemas.fields(
        {
            "event": schemas.text(64, "switch.engaged, switch.*, or *."),
            "scope": schemas.choice(["", *SCOPES]),
            "severity": schemas.choice(["", *SEVERITIES]),
            "target": schemas.text(),
        },
        ("target",),
    )
    properties = {
        TARGETS: schemas.entries(target, help="Targets by name."),
        ROUTES: schemas.list_of(route, help="Which messages go to which target."),
        CONTACTS: schemas.entries(
            contact_entries.build_schema(), help="Contacts of teams by slug."
        ),
    }
    return schemas.file_schema("Targets and routes", properties, "Who is notified. No secrets.")


def _read_entries() -> dict[str, Document]:
    rows = list(Target.objects.select_related("user").order_by("name"))
    known = directory.read_directory(rows)
    return {row.name: target_entries.to_entry(row, known) for row in rows}


def _read_entry(name: str, given: Mapping[str, Any]) -> Document:
    if fields.normalize_text(name) != name:
        raise InvalidInput({"name": ["Leave out spaces at the ends; use composed characters."]})
    return target_entries.read_entry(given)


def _write_targets(found: Comparison, now: datetime) -> list[dict[str, Any]]:
    """Write the planned targets, those first that others refer to; return their audit rows."""
    order = list(target_entries.FIELDS_BY_KIND)
    audit_rows = []
    for one in sorted(found.writes, key=lambda write: order.index(write.after["kind"])):
        row = Target.objects.select_related("user").filter(name=one.name).first()
        before = target_settings(row) if row else None
        request = target_entries.to_request(one.name, one.after)
        try:
            checked = fields.check_target(request, row)
        except InvalidInput as error:
            place = f"{FILE}: {one.name}"
            found.errors |= {f"{place}: {key}": texts for key, texts in error.errors.items()}
            continue
        target = row or Target(created_at=now)
        services.save_target(target, checked, request)
        if one.before == target_entries.to_entry(target, directory.read_directory([target])):
            _mark_same(found, one.name)  # The entry was only written differently.
            continue
        audit_rows.append(
            {
                "action": "target.changed" if row else "target.created",
                "target": f"target:{one.name}",
                "before": before,
                "after": target_settings(target),
            }
        )
    if found.writes:
        Escalation.objects.filter(closed_at=None, acknowledged_at=None).update(next_at=now)
    return audit_rows


def _mark_same(found: Comparison, name: str) -> None:
    same = EntryChange(found.kind, name, SAME)
    found.changes = [same if one.name == name else one for one in found.changes]


def _add_routes(routes: Sequence[Any], now: datetime) -> Loaded:
    """Add the missing routes; routes that no file mentions stay."""
    errors: Errors = {}
    changes, audit_rows = [], []
    present = {_describe(row): row for row in Route.objects.select_related("target")}
    for place, given in enumerate(routes):
        try:
            target, columns = _check_route(given)
        except InvalidInput as error:
            where = f"{FILE}: {ROUTES}.{place}"
            errors |= {f"{where}: {key}": texts for key, texts in error.errors.items()}
            continue
        route = Route(**columns, target=target, created_at=now)
        name = _describe(route)
        if name in present:
            changes.append(EntryChange("route", name, SAME))
            continue
        route.save()
        present[name] = route
        changes.append(EntryChange("route", name, NEW))
        after = services.describe_route(route)
        audit_rows.append(
            {"action": "route.created", "target": f"target:{target.name}", "after": after}
        )
    if errors:
        raise InvalidInput(errors)
    named = {change.name for change in changes}
    elsewhere = tuple(f"route {name}" for name in sorted(present) if name not in named)
    return Loaded(tuple(changes), (), elsewhere, audit_rows)


def _check_route(given: Any) -> tuple[Target, dict[str, str]]:
    if not isinstance(given, Mapping):
        raise InvalidInput({"route": ["Must be a mapping with event and target."]})
    errors: Errors = {}
    json_values.refuse_unknown("", given, ROUTE_FIELDS, errors)
    texts = {name: "" if given.get(name) is None else given[name] for name in ROUTE_FIELDS}
    for name, text in texts.items():
        if not isinstance(text, str):
            json_values.add_error(errors, name, "Must be a string.")
    if errors:
        raise InvalidInput(errors)
    return services.check_route(**texts)


def _describe(route: Route) -> str:
    which = [route.event, route.scope and f"scope {route.scope}", route.severity]
    return f"{', '.join(filter(None, which))} → {route.target.name}"


def _list_missing_secrets(entries: Mapping[str, Any]) -> tuple[str, ...]:
    channels = Target.objects.filter(name__in=list(entries), kind=Target.Kind.CHANNEL)
    missing = {row.name: target_entries.missing_secrets(row) for row in channels.order_by("name")}
    return tuple(
        f"{FILE}: {name} reaches no one until you enter {' and '.join(nouns)} on the page {PAGE}."
        for name, nouns in missing.items()
        if nouns
    )
