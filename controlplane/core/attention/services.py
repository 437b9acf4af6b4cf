"""Reader of the attention items of all registered sources, most severe first."""

import functools
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import structlog
from django.core.exceptions import EmptyResultSet
from django.db import connection, transaction
from django.db.models import QuerySet

from controlplane.core import compiled_query
from controlplane.core.message_templates import SEVERITIES
from controlplane.core.page_registry import ATTENTION_SOURCES, AttentionItem, AttentionSource, Rows

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
        return len(self.waiting)

    @property
    def critical(self) -> int:
        return sum(item.severity == "critical" for item in self.waiting)

    @property
    def groups(self) -> list[tuple[str, list[AttentionItem]]]:
        """The items by severity: pairs of a severity and its items, most severe first."""
        grouped = [(one, [w for w in self.waiting if w.severity == one]) for one in SEVERITIES]
        return [(severity, found) for severity, found in grouped if found]


def read_all(now: datetime) -> Overview:
    """Return the attention items of all registered sources; a failing one is listed in `unread`."""
    return read_sources(list(ATTENTION_SOURCES.values()), now)


def read_sources(sources: Sequence[AttentionSource], now: datetime) -> Overview:
    """Return the attention items of `sources`; a failing source is listed in `unread`."""
    waiting: list[AttentionItem] = []
    unread: list[str] = []
    silent = _find_empty_sources(sources, now)
    for source in sources:
        found = [] if source in silent else _read_source(source, now)
        if found is None:
            unread.append(source.label)
        else:
            waiting += found
    return Overview(tuple(sorted(waiting, key=_sort_key)), tuple(unread))


def count(now: datetime) -> Overview:
    """Return all attention items, read at most 5 s ago, for the count in the navigation."""
    global _counted
    taken_at, counted = _counted
    if counted is None or time.monotonic() - taken_at >= COUNT_CACHE_SECONDS:
        counted = read_all(now)
        _counted = (time.monotonic(), counted)
    return counted


def clear_count() -> None:
    global _counted
    _counted = _NEVER


def clear_compiled() -> None:
    """Empty the cache of compiled SQL conditions; tests call this after they change settings."""
    _compile_exists.cache_clear()


_NEVER: tuple[float, Overview | None] = (0.0, None)
_counted = _NEVER


def _find_empty_sources(sources: Sequence[AttentionSource], now: datetime) -> set[AttentionSource]:
    """Return the sources without items: no queryset of their `only_if` has rows. One query."""
    named = [(source, source.only_if) for source in sources if source.only_if]
    if not named:
        return set()
    try:
        with _isolate_failure(), connection.cursor() as cursor:
            texts, given = zip(*(_compile_exists(rows) for _, rows in named), strict=True)
            parameters = compiled_query.substitute_now([one for each in given for one in each], now)
            cursor.execute(f"SELECT {', '.join(texts)}", parameters)
            found = cursor.fetchone()
    except Exception:
        # Then each source is read separately, so that the failing one is named.
        if not connection.is_usable():
            raise
        log.exception("attention.row_check_failed")
        return set()
    return {source for (source, _), exists in zip(named, found, strict=True) if not exists}


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


def _read_source(source: AttentionSource, now: datetime) -> list[AttentionItem] | None:
    try:
        with _isolate_failure():
            return list(source.function(now))
    except Exception:
        # Without the database there is no answer; a source's own error must not hide the others.
        if not connection.is_usable():
            raise
        log.exception("attention.source_failed", source=source.label)
        return None


def _sort_key(one: AttentionItem) -> tuple[int, datetime, str]:
    rank = SEVERITIES.index(one.severity) if one.severity in SEVERITIES else 0
    return rank, one.since.astimezone(UTC), one.title
