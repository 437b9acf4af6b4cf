"""Reader of the attention items of all registered sources, most severe first."""

import functools
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import structlog
from django.core.exceptions import EmptyResultSet
from django.db import connection, transaction
from django.db.models import QuerySet

from controlplane.core import compiled_query
from controlplane.core.actions import Action
from controlplane.core.actors import Actor
from controlplane.core.authority import MINE, TeamFilter, Teams
from controlplane.core.message_templates import SEVERITIES
from controlplane.core.page_registry import (
    ATTENTION_SOURCES,
    AttentionAction,
    AttentionItem,
    AttentionSource,
    Rows,
)
from controlplane.core.roles import Power

log = structlog.get_logger(__name__)

COUNT_CACHE_SECONDS = 5.0  # Every page shows the count.


@dataclass(frozen=True)
class Overview:
    """The result of reading attention items: the items, most severe first, then oldest.

    `unread` has the labels of the sources that couldn't be read.
    """

    waiting: tuple[AttentionItem, ...]
    unread: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        return sum(item.only_for is None for item in self.waiting)

    @property
    def is_complete(self) -> bool:
        return not self.unread

    @property
    def personal(self) -> int:
        """The number of items that are shown to one person alone."""
        return len(self.waiting) - self.total

    @property
    def critical(self) -> int:
        return sum(item.severity == "critical" for item in self.waiting)

    @property
    def groups(self) -> list[tuple[str, list[AttentionItem]]]:
        """The items by severity: pairs of a severity and its items, most severe first."""
        grouped = [(one, [w for w in self.waiting if w.severity == one]) for one in SEVERITIES]
        return [(severity, found) for severity, found in grouped if found]

    def shown_to(self, user_id: int | None) -> "Overview":
        """Return the overview without the items for other users alone."""
        shown = [one for one in self.waiting if one.only_for in (None, user_id)]
        return Overview(tuple(shown), self.unread)

    def split_by_team(self, team_filter: TeamFilter) -> "tuple[Overview, Overview]":
        """Return the items that the filter selects, and those that it hides.

        With `mine` it hides no item for one user alone.
        """
        selected: list[AttentionItem] = []
        hidden: list[AttentionItem] = []
        for one in self.waiting:
            is_own = one.only_for is not None and team_filter.wanted == MINE
            (selected if is_own or team_filter.includes(one.resource) else hidden).append(one)
        return Overview(tuple(selected), self.unread), Overview(tuple(hidden))


def read_all(now: datetime) -> Overview:
    """Return the attention items of all registered sources; a failing one is listed in `unread`.

    They become those that :func:`count` returns.
    """
    global _counted
    overview = read_sources(list(ATTENTION_SOURCES.values()), now)
    _counted = time.monotonic(), overview
    return overview


def read_sources(sources: Sequence[AttentionSource], now: datetime) -> Overview:
    """Return the attention items of `sources`; a failing source is listed in `unread`.

    An item about nothing but subjects of earlier items is left out.
    """
    waiting: list[AttentionItem] = []
    unread: list[str] = []
    fetched = _fetch_rows(sources, now)
    for source in sources:
        found = _read_source(source, fetched.get(source), now)
        if found is None:
            unread.append(source.label)
        else:
            waiting += found
    return Overview(tuple(_drop_repeated(sorted(waiting, key=_sort_key))), tuple(unread))


def count(now: datetime) -> Overview:
    """Return all attention items, read at most 5 s ago, for the count in the navigation."""
    taken_at, counted = _counted
    if counted is None or time.monotonic() - taken_at >= COUNT_CACHE_SECONDS:
        counted = read_all(now)
    return counted


def permitted_actions(
    item: AttentionItem, actor: Actor, teams: Teams
) -> tuple[AttentionAction, ...]:
    """Return the actions of an item that the actor may do."""
    return tuple(
        one
        for one in item.actions
        if one.except_user is None or one.except_user != actor.user_id
        if _is_permitted(one, item.resource, actor, teams)
    )


def _is_permitted(action: AttentionAction, resource: str, actor: Actor, teams: Teams) -> bool:
    if action.authority and resource:
        needed = action.permission if action.permission not in set(Power) else ""
        is_allowed = teams.decide(actor, Action(action.authority), resource).is_allowed
        return is_allowed and (not needed or actor.may(needed))
    if action.permission in set(Power):
        return actor.has(Power(action.permission))
    return actor.may(action.permission)


def clear_count() -> None:
    global _counted
    _counted = _NEVER


def clear_compiled() -> None:
    """Empty the cache of compiled SQL conditions; tests call this after they change settings."""
    _compile_exists.cache_clear()
    compiled_query.compile_list.cache_clear()


_NEVER: tuple[float, Overview | None] = (0.0, None)
_counted: tuple[float, Overview | None] = _NEVER


def _fetch_rows(
    sources: Sequence[AttentionSource], now: datetime
) -> Mapping[AttentionSource, list[list[Any]]]:
    """Return the rows of the sources, one list for each queryset, fetched by one statement.

    A source with `only_if` gets an empty list if it has no items, otherwise nothing.
    """
    checked = [(source, source.only_if) for source in sources if source.only_if]
    try:
        listed = [
            (source, compiled_query.compile_list(one)) for source in sources for one in source.rows
        ]
        if not checked and not listed:
            return {}
        with _isolate_failure(), connection.cursor() as cursor:
            parts = [_compile_exists(rows) for _, rows in checked]
            parts += [(one.sql, one.parameters) for _, one in listed]
            texts, given = zip(*parts, strict=True)
            parameters = compiled_query.substitute_now([one for each in given for one in each], now)
            cursor.execute(f"SELECT {', '.join(texts)}", parameters)
            values = cursor.fetchone()
        rows = [
            (source, one.read(value))
            for (source, one), value in zip(listed, values[len(checked) :], strict=True)
        ]
    except Exception:
        # Then each source is read separately, so that the failing one is named.
        if not connection.is_usable():
            raise
        log.exception("attention.rows_failed")
        return {}
    found: dict[AttentionSource, list[list[Any]]] = {
        source: [] for (source, _), exists in zip(checked, values, strict=False) if not exists
    }
    for source, fetched in rows:
        found.setdefault(source, []).append(fetched)
    return found


@functools.lru_cache(maxsize=256)
def _compile_exists(rows: Rows) -> tuple[str, Sequence[Any]]:
    """Return an SQL condition, true if one of a source's querysets has a row, and its parameters.

    The parameters have a placeholder for the time, which `substitute_now` replaces.
    """
    texts = ["false"]
    given: list[Any] = []
    built = rows(compiled_query.MOMENT)
    for each in [built] if isinstance(built, QuerySet) else built:
        try:
            sql, params = each.order_by().values_list("pk")[:1].query.sql_with_params()
        except EmptyResultSet:
            continue
        texts.append(f"EXISTS ({sql})")
        given += params
    return " OR ".join(texts), given


def _isolate_failure() -> AbstractContextManager[Any]:
    # A failing statement aborts a surrounding transaction, unless it runs in a savepoint. Outside
    # of one, sources only read, so that no BEGIN and COMMIT are needed.
    return transaction.atomic() if connection.in_atomic_block else nullcontext()


def _read_source(
    source: AttentionSource, rows: list[list[Any]] | None, now: datetime
) -> list[AttentionItem] | None:
    """Return a source's items, None if it failed. Without its fetched `rows` it fetches them."""
    if rows is not None and not any(rows):
        return []
    try:
        with _isolate_failure():
            if rows is None or source.build is None:
                return list(source.function(now))
            return list(source.build(now, *rows))
    except Exception:
        # Without the database there is no answer; a source's own error must not hide the others.
        if not connection.is_usable():
            raise
        log.exception("attention.source_failed", source=source.label)
        return None


def _drop_repeated(items: Iterable[AttentionItem]) -> Iterator[AttentionItem]:
    seen: set[str] = set()
    for item in items:
        if not item.subjects or not seen.issuperset(item.subjects):
            yield item
        seen.update(item.subjects)


def _sort_key(one: AttentionItem) -> tuple[int, datetime, str]:
    rank = SEVERITIES.index(one.severity) if one.severity in SEVERITIES else 0
    return rank, one.since.astimezone(UTC), one.title
