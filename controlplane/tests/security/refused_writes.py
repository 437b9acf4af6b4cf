"""Traces of refused writes: no table and no stream may change."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from django.db import connection
from django.test import Client

from breakers.dead_letters.tests.heaps import heap
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import browser_of
from controlplane.tests.security import callers, existing_objects, markup
from controlplane.tests.security.writes import House, Write
from switches.ramps import actions
from switches.tests.ramps import gated_plan, start_ramp

# When somebody was last seen is noted whatever they ask.
SEEN = ["last_seen_at", "last_used_at", "expire_date"]


@contextmanager
def full_house(settings: Any) -> Iterator[tuple[House, dict[str, Client]]]:
    """An installation with objects in every table, and a browser for each role."""
    with heap(settings) as letters:
        ada = markup.build(letters)
        existing_objects.more(ada, letters)
        existing_objects.kept_for_good(ada, "experiment:b")
        paused = start_ramp(
            "feature:paused", by=ada, plan=gated_plan({"type": "external", "gate": "x"})
        )
        why: dict[str, Any] = {
            "reason": existing_objects.REASON,
            "actor": ada.as_actor(),
            "now": db_now(),
        }
        actions.pause(ramp_id=paused.pk, **why)
        # Made before anybody is asked: some writes name them.
        people = {role: callers.somebody(role) for role in callers.RANKS}
        yield House(letters, existing_objects.arguments(letters), browser_of(ada)), people


def answered(house: House, ask: Callable[[], Any]) -> tuple[Any, set[str]]:
    """Return the answer, and the tables and streams that changed though it was refused.

    All of it is taken back. Reading every table takes long, so only those are read that the request
    wrote a row of, be it one that is rolled back by then.
    """
    streams, counts = _streams(house), _rows_written()
    after: dict[Any, Any] = {}
    with callers.undone():
        answer = ask()
        refused = answer.status_code >= 400
        if refused and (written := {name for name, _count in _rows_written() - counts}):
            after = _tables(written)
    if not refused:
        return answer, set()
    return answer, _different(_tables(after), after) | _different(streams, _streams(house))


def _rows_written() -> set[tuple[str, int]]:
    """Return each table that this transaction wrote to, and the number of rows until now."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname, n_tup_ins + n_tup_upd + n_tup_del FROM pg_stat_xact_user_tables"
            " WHERE n_tup_ins + n_tup_upd + n_tup_del > 0"
        )
        return set(cursor.fetchall())


def _tables(names: Iterable[str]) -> dict[Any, Any]:
    """Return a digest of the rows of each of these tables."""
    said = "hashtextextended((to_jsonb(t) - %(seen)s::text[])::text, 0)"
    each = " UNION ALL ".join(
        f"SELECT '{name}', count(*), coalesce(sum({said}), 0) FROM \"{name}\" t" for name in names
    )
    if not each:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(each, {"seen": SEEN})
        return {name: (rows, digest) for name, rows, digest in cursor.fetchall()}


def _streams(house: House) -> dict[Any, Any]:
    """Return the content of every stream of dead letters."""
    redis = house.letters.redis
    keys = list(redis.scan_iter(f"*{house.letters.prefix}*", count=1000))
    with redis.pipeline(transaction=False) as pipeline:
        for key in keys:
            pipeline.dump(key)
        return dict(zip(keys, pipeline.execute(), strict=True))


def _different(before: Mapping[Any, Any], after: Mapping[Any, Any]) -> set[str]:
    return {str(key) for key in before.keys() | after.keys() if before.get(key) != after.get(key)}


def complaint(write: Write, answer: Any, changed: set[str], may: bool) -> str:
    """Return the problem with an answer; empty if there is none."""
    if may:
        return "" if answer.status_code < 400 else f"{answer.status_code} {answer.content[:200]}"
    if answer.status_code != (404 if write.hidden else 403):
        return f"{answer.status_code}, though it is not for them: {answer.content[:200]}"
    return f"left traces in {sorted(changed)}" if changed else ""


def format_complaints(wrong: Mapping[str, Any]) -> str:
    return "\n" + "\n".join(f"{what}: {found}" for what, found in wrong.items())
