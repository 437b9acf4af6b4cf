"""Deletion of rows that are older than their retention period, in small transactions."""

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

from django.apps import apps
from django.db import connection, transaction

from controlplane.core.retention.rules import RetentionRule, sql_parameters

BATCH_SIZE = 5000
MAX_ROWS = 1_000_000

# Rows that are locked are left for the next run.
_OLD = "SELECT {key} FROM {table} it WHERE {where} {order} LIMIT %(most)s FOR UPDATE SKIP LOCKED"


def purge(
    rules: Iterable[RetentionRule],
    now: datetime,
    *,
    at_once: int = BATCH_SIZE,
    most: int = MAX_ROWS,
) -> int:
    """Delete up to `most` rows by each rule, `at_once` in a transaction; return how many."""
    return sum(_purge(rule, now - rule.effective_period, at_once, most) for rule in rules)


def purge_by_statements(
    statements: Iterable[tuple[str, timedelta]], now: datetime, *, at_once: int, most: int
) -> int:
    """Delete rows by SQL statements, where a rule's condition on a row is not enough.

    Each statement has the parameters `before` and `most`, and comes with its period. Returns how
    many rows were deleted.
    """
    return sum(_execute(statement, now - period, at_once, most) for statement, period in statements)


def _purge(rule: RetentionRule, before: datetime, at_once: int, most: int) -> int:
    return _in_batches(lambda size: _delete_batch(rule, before, size), at_once, most)


def _execute(statement: str, before: datetime, at_once: int, most: int) -> int:
    def run(size: int) -> int:
        with connection.cursor() as cursor:
            cursor.execute(statement, {"before": before, "most": size})
            return int(cursor.rowcount)

    return _in_batches(run, at_once, most)


def _in_batches(delete: Callable[[int], int], at_once: int, most: int) -> int:
    """Call `delete` with a batch size until a batch is not full or `most` rows are gone."""
    done = 0
    while done < most:
        deleted = delete(min(at_once, most - done))
        done += deleted
        if deleted < at_once:
            break
    return done


@transaction.atomic
def _delete_batch(rule: RetentionRule, before: datetime, most: int) -> int:
    order = f"ORDER BY {rule.order}" if rule.order else ""
    statement = _OLD.format(key=rule.key, table=rule.table, where=rule.where, order=order)
    with connection.cursor() as cursor:
        cursor.execute(statement, {**sql_parameters(before), "most": most})
        keys = [key for (key,) in cursor.fetchall()]
    # Through the model, so that dependent rows go as well.
    apps.get_model(rule.model)._base_manager.filter(pk__in=keys).delete()
    return len(keys)
