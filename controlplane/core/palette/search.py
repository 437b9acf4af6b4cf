"""Search of the palette: commands and objects that match a text, best first."""

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import structlog
from django.db import connection, transaction

from controlplane.core.actors import Person
from controlplane.core.authority import MINE, read_teams
from controlplane.core.favorites import services as favorites
from controlplane.core.roles import SCOPES_OF, Role

from . import relevance
from .palette_entries import list_team_pages
from .registry import (
    ACTION,
    PALETTE_COMMANDS,
    PALETTE_SOURCES,
    PaletteCommand,
    PaletteEntry,
    PaletteQuery,
    PaletteSource,
)

log = structlog.get_logger(__name__)

MAX_FOUND = 24
MAX_QUERY_LENGTH = 200
FAVORITES = "Favorites"
FAVORITE_BONUS = 100.0
_SCOPED = re.compile(r"team:(\S+)(?:\s+(.*))?", re.DOTALL | re.IGNORECASE)


def search_palette(query: PaletteQuery) -> list[tuple[str, list[PaletteEntry]]]:
    """Return (kind, entries) pairs that match, starting with the kind of the best match.

    Without text, all commands match. In the scope of a team, only what it owns does; without text,
    its pages.
    """
    if query.scope.wanted:
        return _search_scope(query)
    allowed = [command for command in PALETTE_COMMANDS.values() if is_allowed(command, query.user)]
    starred = _read_source(find_favorites, query)
    if not query.text:
        # Actions come before pages, so that people learn their keys.
        commands = [_build_entry(one, 1.0 if one.kind == ACTION else 0.0) for one in allowed]
        return _group_by_kind([*starred, *commands])
    entries = [
        _build_entry(one, weight)
        for one in allowed
        if (weight := relevance.score_text(query.words, one.title, one.words))
    ]
    for source in PALETTE_SOURCES.functions():
        entries += _read_source(source, query)
    paths = {one.path for one in starred}
    entries = [*starred, *(one for one in entries if one.path not in paths)]
    return _group_by_kind(sorted(entries, key=lambda one: -one.weight)[:MAX_FOUND])


def read_query(text: str, user: Person, now: datetime) -> PaletteQuery:
    """Return the query for a text; `team:payments finance` searches what a team owns.

    The team may also be `mine` or `unowned`.
    """
    teams = read_teams()
    own = teams.filter_for(user.pk, MINE)
    match = _SCOPED.fullmatch(text)
    scope = teams.filter_for(user.pk, match[1].casefold() if match else "")
    words = (match[2] or "") if match and scope.wanted else text
    return PaletteQuery(words, user, now, teams, scope, own)


def _search_scope(query: PaletteQuery) -> list[tuple[str, list[PaletteEntry]]]:
    if not query.text:
        return _group_by_kind(list_team_pages(query.scope))
    entries = [
        one
        for source in PALETTE_SOURCES.functions()
        for one in _read_source(source, query)
        if one.resource and query.scope.includes(one.resource)
    ]
    return _group_by_kind(sorted(entries, key=lambda one: -one.weight)[:MAX_FOUND])


def find_favorites(query: PaletteQuery) -> list[PaletteEntry]:
    """Return the user's favorites that match, or all of them without text; they rank first."""
    return [
        PaletteEntry(
            FAVORITES,
            one.title,
            kind.icon,
            one.path,
            kind.label,
            weight=weight + FAVORITE_BONUS,
            is_lasting=True,
        )
        for kind, one in favorites.list_objects(query.user)
        if (weight := relevance.score_text(query.words, one.title) if query.text else 1.0)
    ]


def is_allowed(command: PaletteCommand, user: Person) -> bool:
    if command.scope == "admin":
        return user.is_admin
    if command.scope == "operate":
        return user.may_operate
    return not command.scope or command.scope in SCOPES_OF[Role(user.role)]


def _build_entry(command: PaletteCommand, weight: float) -> PaletteEntry:
    shared = ("kind", "title", "icon", "path", "detail", "in_dialog", "runs")
    values: dict[str, Any] = {name: getattr(command, name) for name in shared}
    return PaletteEntry(**values, keys=command.key_sequence, weight=weight, is_lasting=True)


def _read_source(source: PaletteSource, query: PaletteQuery) -> list[PaletteEntry]:
    try:
        with transaction.atomic():
            return list(source(query))
    except Exception:
        # A source's error must not hide the others; without the database there are only commands,
        # which are needed most then.
        if connection.is_usable():
            log.exception("palette.source_failed", source=source.__name__)
        return []


def _group_by_kind(entries: Iterable[PaletteEntry]) -> list[tuple[str, list[PaletteEntry]]]:
    groups: dict[str, list[PaletteEntry]] = {}
    for entry in sorted(entries, key=lambda one: -one.weight):
        groups.setdefault(entry.kind, []).append(entry)
    return list(groups.items())
