"""Deletion of rows older than their retention period, in small transactions."""

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from functools import partial

from django.apps import apps
from django.db import connection, transaction

from controlplane.core.retention.rules import RetentionRule, sql_parameters

BATCH_SIZE = 5000
MAX_ROWS = 1_000_000

# Locked rows are left for the next run.
_OLD = "SELECT {key} FROM {table} it WHERE {where} {order} LIMIT %(most)s FOR UPDATE SKIP LOCKED"


def purge(
    rules: Iterable[RetentionRule],
    now: datetime,
    *,
    at_once: int = BATCH_SIZE,
    most: int = MAX_ROWS,
) -> int:
    """Delete up to `most` rows by each rule, `at_once` per transaction; return their number."""
    return sum(
        _delete_in_batches(partial(_delete_batch, rule, now - rule.effective_period), at_once, most)
        for rule in rules
    )


def purge_by_statements(
    statements: Iterable[tuple[str, timedelta]], now: datetime, *, at_once: int, most: int
) -> int:
    """Delete rows by SQL statements, each given with its retention period; return their number.

    For deletions that a rule's condition can't express. Statements have the parameters `before` and
    `most`.
    """
    return sum(
        _delete_by_statement(statement, now - period, at_once, most)
        for statement, period in statements
    )


def _delete_by_statement(statement: str, before: datetime, at_once: int, most: int) -> int:
    def run(size: int) -> int:
        with connection.cursor() as cursor:
            cursor.execute(statement, {"before": before, "most": size})
            return int(cursor.rowcount)

    return _delete_in_batches(run, at_once, most)


def _delete_in_batches(delete: Callable[[int], int], at_once: int, most: int) -> int:
    """Call `delete` with a batch size until a batch is not full or `most` rows are deleted."""
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
