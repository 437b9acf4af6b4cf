"""Asking every source for what somebody typed, and putting the best first."""

from collections.abc import Iterable

import structlog
from django.db import connection, transaction

from controlplane.core.actors import Person
from controlplane.core.roles import SCOPES_OF, Role

from . import matching
from . import registry as sources
from .registry import ACTION, Asked, Command, Entry, ThingSource

log = structlog.get_logger(__name__)

SHOWN = 24
MAX_QUERY_LENGTH = 200  # characters of what is typed


def find(asked: Asked) -> list[tuple[str, list[Entry]]]:
    """(kind, entries) of all that fits, the kind with the best entry first; with nothing typed,
    every command."""
    here = [command for command in sources.every_command() if allowed(command, asked.user)]
    if not asked.text:
        # Actions first: they teach their keys where everybody looks.
        return _grouped(entry_of(one, 1.0 if one.kind == ACTION else 0.0) for one in here)
    found = [
        entry_of(one, weight)
        for one in here
        if (weight := matching.weight(asked.words, one.title, one.words))
    ]
    for source in sources.every_source():
        found += _read(source, asked)
    return _grouped(sorted(found, key=lambda one: -one.weight)[:SHOWN])


def allowed(command: Command, user: Person) -> bool:
    """Whether this person may carry a command out. Pages that everybody sees need nothing."""
    if command.scope == "admin":
        return user.is_admin
    if command.scope == "operate":
        return user.may_operate
    return not command.scope or command.scope in SCOPES_OF[Role(user.role)]


def entry_of(command: Command, weight: float = 0.0) -> Entry:
    return Entry(
        kind=command.kind,
        title=command.title,
        icon=command.icon,
        path=command.path,
        detail=command.says,
        keys=tuple(command.pressed),
        in_dialog=command.in_dialog,
        runs=command.runs,
        weight=weight,
        keeps=True,
    )


def _read(source: ThingSource, asked: Asked) -> list[Entry]:
    try:
        with transaction.atomic():
            return list(source(asked))
    except Exception:
        # A source's own mistake must not hide the others; without the database there are only
        # commands, which is what somebody then needs most.
        if connection.is_usable():
            log.exception("palette.source_failed", source=source.__name__)
        return []


def _grouped(entries: Iterable[Entry]) -> list[tuple[str, list[Entry]]]:
    groups: dict[str, list[Entry]] = {}
    for entry in sorted(entries, key=lambda one: -one.weight):
        groups.setdefault(entry.kind, []).append(entry)
    return list(groups.items())
