"""Entries of the configuration file `targets.yaml` for the contacts of teams."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from controlplane.accounts.models.teams import Team
from controlplane.core import json_values
from controlplane.core.configuration import schemas
from controlplane.core.configuration.comparison import Comparison, drop_empty
from controlplane.core.configuration.readers import Document, Loaded, LoadOptions
from controlplane.core.configuration.schemas import Schema
from controlplane.core.configuration.services import find_manual_edits
from controlplane.core.errors import InvalidInput
from controlplane.core.json_values import Errors, add_error

from . import contact_services
from .contact_services import ACTION, FIELDS, MAX_CHANNELS
from .fields import normalize_text
from .team_contacts import read_contacts

KIND = "team with contacts"


def load_entries(
    file: str, entries: Mapping[str, Mapping[str, Any]], options: LoadOptions, errors: Errors
) -> Loaded:
    """Compare and write the contacts of teams, after the targets that they name.

    In a dry run, teams may be missing: `teams.yaml` creates them before.
    """
    teams = {team.slug: team for team in Team.objects.filter(slug__in=entries)}
    found = Comparison(
        KIND,
        file,
        {**{slug: contact_services.build_document({}) for slug in teams}, **_read_entries()},
        options,
        find_manual_edits((ACTION,)),
        errors,
        audit_prefix="team:",
    )
    missing = sorted(entries.keys() - teams.keys()) if options.dry_run else []
    for slug, fields in entries.items():
        if slug not in missing:
            found.compare(slug, partial(_read_entry, fields, slug in teams))
    found.require_valid()
    audit_rows = []
    for one in found.writes:
        chosen = contact_services.check_contacts(**one.after)
        contact_services.save_contacts(teams[one.name], chosen)
        target = f"team:{one.name}"
        audit_rows.append(
            {"action": ACTION, "target": target, "before": one.before, "after": one.after}
        )
    if found.writes:
        contact_services.recheck_escalations(options.now)
    remarks = tuple(f"{file}: the team {slug} must be created before." for slug in missing)
    return found.build_result(audit_rows) + Loaded(remarks=remarks)


def export_entries() -> dict[str, Document]:
    return {slug: drop_empty(one) for slug, one in sorted(_read_entries().items())}


def build_schema() -> Schema:
    return schemas.fields(
        {
            "on_call": schemas.text(help="A rotation, or a person."),
            "channels": schemas.list_of(schemas.text(), MAX_CHANNELS, "Channels."),
            "escalation": schemas.text(help="An escalation other than that of a severity."),
        }
    )


def _read_entries() -> dict[str, Document]:
    slugs = Team.objects.filter(contacts__isnull=False).values_list("slug", flat=True).distinct()
    contacts = read_contacts(slugs, *FIELDS.values())
    return {
        slug: contact_services.build_document(
            {
                name: [one.name for one in contacts.get((slug, kind), ())]
                for name, kind in FIELDS.items()
            }
        )
        for slug in slugs
    }


def _read_entry(given: Mapping[str, Any], is_team: bool) -> Document:
    """Return the complete entry of a team; raise :class:`InvalidInput`."""
    errors: Errors = {}
    if not is_team:
        add_error(errors, "team", "There is no such team.")
    json_values.refuse_unknown("", given, FIELDS, errors)
    channels = given.get("channels") or []
    if not isinstance(channels, list) or not all(isinstance(one, str) for one in channels):
        add_error(errors, "channels", "Must be a list of names.")
    for name in ("on_call", "escalation"):
        if not isinstance(given.get(name) or "", str):
            add_error(errors, name, "Must be the name of a target.")
    if errors:
        raise InvalidInput(errors)
    names = {
        "channels": dict.fromkeys(map(normalize_text, channels)),
        **{
            name: [normalize_text(given[name])]
            for name in ("on_call", "escalation")
            if given.get(name)
        },
    }
    entry = contact_services.build_document({name: list(found) for name, found in names.items()})
    contact_services.check_contacts(**entry)
    return entry
