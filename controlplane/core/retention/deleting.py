"""Deleting what was kept long enough, some rows at a time: no statement locks much, or for long."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.apps import apps
from django.db import connection, transaction

from controlplane.core.retention.rules import Rule, moments

AT_ONCE = 5000
MAX_ROWS = 1_000_000

# Rows that somebody holds just now are left for the next turn.
_OLD = "SELECT {key} FROM {table} it WHERE {where} {order} LIMIT %(most)s FOR UPDATE SKIP LOCKED"


def purge(
    rules: Iterable[Rule], now: datetime, *, at_once: int = AT_ONCE, most: int = MAX_ROWS
) -> int:
    """Delete up to `most` rows by each rule, `at_once` in one transaction; returns how many."""
    return sum(_purge(rule, now - rule.lasts, at_once=at_once, most=most) for rule in rules)


def forget(
    statements: Iterable[tuple[str, timedelta]], now: datetime, *, at_once: int, most: int
) -> int:
    """The same by statements of one's own, where a condition on a row does not say it.

    Each takes `before` and `most`, and comes with how long its rows are kept.
    """
    return sum(
        _forget(statement, now - kept, at_once=at_once, most=most) for statement, kept in statements
    )


def _purge(rule: Rule, before: datetime, *, at_once: int, most: int) -> int:
    done = 0
    while done < most:
        deleted = _delete_some(rule, before, min(at_once, most - done))
        done += deleted
        if deleted < at_once:
            break
    return done


@transaction.atomic
def _delete_some(rule: Rule, before: datetime, most: int) -> int:
    order = f"ORDER BY {rule.order}" if rule.order else ""
    statement = _OLD.format(key=rule.key, table=rule.table, where=rule.where, order=order)
    with connection.cursor() as cursor:
        cursor.execute(statement, {**moments(before), "most": most})
        keys = [key for (key,) in cursor.fetchall()]
    # By the models, which know what hangs on a row.
    apps.get_model(rule.model)._base_manager.filter(pk__in=keys).delete()
    return len(keys)


def _forget(statement: str, before: datetime, *, at_once: int, most: int) -> int:
    done = 0
    while done < most:
        with connection.cursor() as cursor:
            cursor.execute(statement, {"before": before, "most": at_once})
            deleted = int(cursor.rowcount)
        done += deleted
        if deleted < at_once:
            break
    return done
