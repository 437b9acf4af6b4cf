"""Palette entries of core: its pages, actions and runbooks."""

from collections.abc import Sequence

from django.urls import reverse

from controlplane.core.authority import MINE, UNOWNED, TeamFilter
from controlplane.core.console_urls import DOCUMENTATION_PATH
from controlplane.core.runbooks import library
from controlplane.core.team_filter import PARAMETER

from . import relevance
from .registry import (
    ACTION,
    MAX_ENTRIES,
    PALETTE_COMMANDS,
    PALETTE_SOURCES,
    PaletteCommand,
    PaletteEntry,
    PaletteQuery,
    register_commands,
)

register_commands(
    20,
    PaletteCommand(
        "Needs attention",
        "attention",
        "attention_page",
        keys="g n",
        words="waits inbox todo overdue",
        has_team_filter=True,
    ),
    PaletteCommand(
        "Approvals", "approvals", "approvals_page", keys="g p", words="approve review sign second"
    ),
)
register_commands(
    60,
    PaletteCommand("Runbooks", "book", "runbooks_page", keys="g h", words="help how what to do"),
    PaletteCommand("Audit", "audit", "audit_page", keys="g a", words="trail who did history log"),
    PaletteCommand("Jobs", "jobs", "jobs_page", words="background work"),
    PaletteCommand(
        "Fleet",
        "fleet",
        "fleet_page",
        keys="g f",
        words="data planes relays regions upstream lag version",
        has_team_filter=True,
    ),
    PaletteCommand(
        "Documentation", "book", address=DOCUMENTATION_PATH, words="help guide manual tutorial"
    ),
    PaletteCommand("API reference", "book", "docs", words="openapi curl http endpoints"),
    PaletteCommand(
        "Notifications",
        "target",
        "targets_page",
        words="targets who is notified escalation rotation slack",
    ),
    PaletteCommand(
        "Deliveries", "delivery", "deliveries_page", words="messages slack e-mail webhook"
    ),
)
register_commands(
    85,
    PaletteCommand(
        "People", "person", "people_page", words="users accounts roles who", scope="admin"
    ),
    PaletteCommand("Teams", "team", "teams_page", words="owner owns who may lead member authority"),
    PaletteCommand("Tokens", "token", "tokens_page", words="api keys programs scopes mine"),
    PaletteCommand(
        "Add a person…",
        "person",
        "person_new",
        kind=ACTION,
        in_dialog=True,
        words="new user account invite",
        scope="admin",
    ),
    PaletteCommand(
        "Create a token…",
        "token",
        "token_new",
        kind=ACTION,
        in_dialog=True,
        words="new create api key",
        scope="admin",
    ),
)
register_commands(
    90,
    PaletteCommand(
        "First steps", "check", "first_steps_page", words="start onboarding help sample example"
    ),
    PaletteCommand("Preferences", "settings", "preferences", words="time zone name password me"),
    PaletteCommand(
        "Security",
        "glass",
        "security_page",
        words="second factor app passkey totp mfa recovery codes me",
    ),
    PaletteCommand(
        "Sessions", "monitor", "sessions_page", words="signed in devices sign out end me"
    ),
    PaletteCommand("Administration", "person", "admin:index", words="admin django", scope="admin"),
)
register_commands(
    95,
    PaletteCommand(
        "Show times in UTC, or in my zone",
        "clock",
        keys="u",
        kind=ACTION,
        runs="times",
        words="utc local zone",
    ),
    PaletteCommand(
        "Keyboard shortcuts", "keyboard", keys="?", kind=ACTION, runs="shortcuts", words="help keys"
    ),
)


@PALETTE_SOURCES.add(60)
def search_runbooks(query: PaletteQuery) -> Sequence[PaletteEntry]:
    """Return palette entries for the runbooks whose title, summary or symptoms match the query."""
    found = []
    for one in library.list_runbooks():
        weight = relevance.score_text(
            query.words, one.title, f"{one.summary} {' '.join(one.symptoms)}"
        )
        if weight:
            path = reverse("runbook_page", args=[one.slug])
            found.append(
                PaletteEntry(
                    "Runbook", one.title, "book", path, one.summary, weight=weight, is_lasting=True
                )
            )
    return sorted(found, key=lambda one: -one.weight)[:MAX_ENTRIES]


@PALETTE_SOURCES.add(15)
def search_teams(query: PaletteQuery) -> Sequence[PaletteEntry]:
    """Return entries of the teams whose name or slug matches, and of the user's own for `mine`."""
    found = []
    for slug, name in query.scope.choices:
        title = "My teams" if slug == MINE else name
        weight = relevance.score_text(query.words, title, f"team:{slug} {slug}")
        if slug and weight:
            found.append(
                PaletteEntry(
                    "Team", title, "group", _team_path(slug), f"team:{slug}", weight=weight
                )
            )
    return sorted(found, key=lambda one: -one.weight)[:MAX_ENTRIES]


def list_team_pages(team: TeamFilter) -> list[PaletteEntry]:
    """Return the entries of the pages of what a team owns."""
    query = f"?{PARAMETER}={team.wanted}"
    return [
        PaletteEntry(team.label, f"{one.title}: {team.label}", one.icon, f"{one.path}{query}")
        for one in PALETTE_COMMANDS.values()
        if one.has_team_filter
    ]


def _team_path(slug: str) -> str:
    if slug in (MINE, UNOWNED):
        return f"{reverse('switchboard')}?{PARAMETER}={slug}"
    return f"/teams/{slug}/"
