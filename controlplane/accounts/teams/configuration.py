"""The configuration file `teams.yaml`: teams by slug, and rules of authority.

Changes by people and tokens wait for a second person; the shell's apply at once.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from django.db import transaction

from controlplane.accounts.models.teams import SLUG, AuthorityRule, Membership, Team
from controlplane.core import json_values
from controlplane.core.actions import Action, Relation
from controlplane.core.configuration import schemas
from controlplane.core.configuration.comparison import Comparison, PlannedWrite, drop_empty
from controlplane.core.configuration.files import read_document, read_entries
from controlplane.core.configuration.readers import REASON, Document, Finish, Loaded, LoadOptions
from controlplane.core.configuration.schemas import Schema
from controlplane.core.configuration.services import find_manual_edits
from controlplane.core.errors import InvalidInput
from controlplane.core.json_values import Errors
from controlplane.core.roles import Role

from . import changes, fields, groups, lockout, rules, services, writes
from .documents import read_documents, record_changes
from .storage import lock_teams, read_teams

FILE, TEAMS, RULES = "teams.yaml", "teams", "authority"
TEAM_ACTIONS = ("team.created", "team.changed", "team.deleted")
RULE_ACTIONS = ("authority.changed",)
RULE_FIELDS = ("relation", "role")
NOTE = "needs a second person's approval"
Requests = dict[tuple[str, str], int]
"""Ids of approval requests by kind and name of the entry."""


def load_file(texts: Mapping[str, str], options: LoadOptions) -> Loaded:
    """Create or change the teams and rules of the file; those that it doesn't mention stay.

    A dry run makes the changes and rolls them back, because teams refer to each other.
    """
    errors: Errors = {}
    document = read_document(FILE, texts[FILE], (TEAMS, RULES), errors)
    entries = {part: read_entries(FILE, document, part, errors) for part in (TEAMS, RULES)}
    note = "" if options.actor.type == "system" else NOTE
    with transaction.atomic():
        if any(entries.values()) and not options.dry_run:
            lock_teams(to_change=True)
        present = _read_rules(entries[RULES])
        teams = Comparison(
            *("team", FILE, _read_entries(), options, find_manual_edits(TEAM_ACTIONS), errors),
            audit_prefix="team:",
            note=note,
        ).compare_all(entries[TEAMS], _check_team)
        edited = find_manual_edits(RULE_ACTIONS)
        edited = {target.removesuffix(":"): text for target, text in edited.items()}
        found = Comparison(
            *("authority rule", FILE, present, options, edited, errors),
            audit_prefix=rules.PREFIX,
            note=note,
        ).compare_all(entries[RULES], _check_rule)
        _try_writes(teams, found, options)
        loaded = teams.build_result() + found.build_result()
        if options.dry_run:
            return loaded
        finish = _write_teams(teams, options), partial(_write_rules, found, options)
        return loaded + Loaded(finish=finish)


def export_documents() -> dict[str, Document]:
    teams = {slug: drop_empty(entry) for slug, entry in sorted(_read_entries().items())}
    return {FILE: {TEAMS: teams, RULES: _read_rules({})}}


def build_schema() -> Schema:
    team = schemas.fields(
        {
            "name": schemas.text(fields.MAX_LENGTHS["name"]),
            "description": schemas.text(fields.MAX_LENGTHS["description"]),
            "runbook_url": schemas.web_url(fields.MAX_LENGTHS["runbook_url"]),
            "parent": schemas.text(40, "Team whose members may do what this one's may."),
            "member_group": schemas.text(255, "Group of the identity provider."),
            "lead_group": schemas.text(255, "Group of the identity provider."),
            "members": schemas.entries(
                schemas.choice(Membership.TeamRole.values), help="Roles by user name."
            ),
            "owns": schemas.list_of(
                schemas.text(help="segment:finance*, service:core, dependency:core->*, slo:x."),
                fields.MAX_PATTERNS,
            ),
        },
        ("name",),
    )
    rule = schemas.fields(
        {
            "relation": schemas.choice([one.value for one in Relation]),
            "role": schemas.choice([one.value for one in Role]),
        },
        help="Leave empty for the default.",
    )
    actions = "|".join(Action)
    properties = {
        TEAMS: schemas.entries(team, f"^{SLUG}$", "Teams by short name."),
        RULES: schemas.entries(
            schemas.nullable(rule), f"^({actions})(:[a-z]+)?$", "By action, or action:kind."
        ),
    }
    return schemas.file_schema("Teams and authority", properties, "Who owns what, and who may.")


def _read_entries() -> dict[str, Document]:
    return {
        slug: {**document, "members": changes.list_manual_members(document)}
        for slug, document in read_documents(Team.objects.order_by("slug")).items()
    }


def _check_team(slug: str, given: Mapping[str, Any]) -> Document:
    fields.check_slug(slug)
    return fields.check_fields({**changes.EMPTY, **given})


def _read_rules(wanted: Mapping[str, Any]) -> dict[str, Document]:
    """Return the stored rules by action and kind, and {} for other wanted ones: the default."""
    stored = {
        f"{row.action}:{row.kind}".removesuffix(":"): {"relation": row.relation, "role": row.role}
        for row in AuthorityRule.objects.order_by("action", "kind")
    }
    return {**{key: {} for key in wanted}, **stored}


def _check_rule(key: str, given: Mapping[str, Any]) -> Document:
    errors: Errors = {}
    json_values.refuse_unknown("", given, RULE_FIELDS, errors)
    if errors:
        raise InvalidInput(errors)
    action, _, kind = key.partition(":")
    return rules.check_rule(action, kind, given or None) or {}


def _try_writes(teams: Comparison, found: Comparison, options: LoadOptions) -> None:
    """Make all changes and roll them back; raise :class:`InvalidInput` with every problem."""
    if not teams.writes and not found.writes:
        return
    before = read_teams()
    with transaction.atomic():
        _apply_teams(teams, options)
        for one in found.writes:
            action, _, kind = one.name.partition(":")
            rules.store_rule(action, kind, one.after or None)
        groups.apply_directory_groups(actor=options.actor, now=options.now)
        if options.actor.type != "system" and (lost := lockout.find_lost(before, read_teams())):
            teams.errors[FILE] = [lost]
        transaction.set_rollback(True)
    teams.require_valid()


def _apply_teams(teams: Comparison, options: LoadOptions) -> None:
    """Write all teams: first new names, and what is given up, so that others can take it."""
    for one in teams.writes:
        first: changes.Diff = {"team": [None, one.name], "name": ["", one.after["name"]]}
        if one.before is not None:
            old = one.before["owns"]
            kept = [pattern for pattern in old if pattern in one.after["owns"]]
            parent = one.before["parent"]
            first = {"owns": [old, kept]}
            if parent != one.after["parent"]:
                first["parent"] = [parent, None]
        _apply(teams, one, first, options)
    for one in teams.writes:
        document = read_documents(Team.objects.filter(slug=one.name)).get(one.name)
        if document is not None:
            _apply(teams, one, changes.compare(document, one.after), options)


def _apply(teams: Comparison, one: PlannedWrite, diff: changes.Diff, options: LoadOptions) -> None:
    try:
        if "members" in diff and one.before is not None:
            present = read_documents(Team.objects.filter(slug=one.name))[one.name]
            writes.require_no_group_members(present, [*diff["members"][1]])
        writes.apply_diff(one.name, diff, options.now)
    except InvalidInput as error:
        place = f"{FILE}: {TEAMS}: {one.name}"
        for field, texts in error.errors.items():
            for text in texts:
                json_values.add_error(teams.errors, f"{place}: {field}", text)


def _write_teams(teams: Comparison, options: LoadOptions) -> Finish:
    """Write the teams for the shell; return the rest: audit entries, or requests for approval."""
    if options.actor.type == "system":
        before = {one.name: None for one in teams.writes} | read_documents(
            Team.objects.filter(slug__in=[one.name for one in teams.writes])
        )
        _apply_teams(teams, options)
        return partial(_record_teams, before, options)
    return partial(_request_teams, teams, options)


def _record_teams(before: Mapping[str, Document | None], options: LoadOptions) -> Requests:
    record_changes(before, actor=options.actor, now=options.now, reason=REASON)
    groups.apply_directory_groups(actor=options.actor, now=options.now)
    return {}


def _request_teams(teams: Comparison, options: LoadOptions) -> Requests:
    requests = {
        one.name: services.request_change(
            slug=one.name,
            wanted=one.after,
            reason=REASON,
            is_tried=True,
            actor=options.actor,
            now=options.now,
        ).approval
        for one in teams.writes
    }
    return {(teams.kind, name): one.pk for name, one in requests.items() if one}


def _write_rules(found: Comparison, options: LoadOptions) -> Requests:
    """Store the rules for the shell, or request their approval; both lock the audit trail."""
    requests = {}
    for one in found.writes:
        action, _, kind = one.name.partition(":")
        requests[found.kind, one.name] = rules.request_change(
            action=action,
            kind=kind,
            wanted=one.after or None,
            reason=REASON,
            actor=options.actor,
            now=options.now,
        )
    return {key: one.pk for key, one in requests.items() if one}
