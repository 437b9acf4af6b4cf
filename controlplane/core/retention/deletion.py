"""Deletion of rows older than their retention period, in small transactions."""

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from functools import partial

from django.db import transaction

from controlplane.core.retention.rules import RetentionRule, sql_parameters
from controlplane.core.sql import execute, fetch_all

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

    def run(statement: str, before: datetime, size: int) -> int:
        return execute(statement, {"before": before, "most": size})

    return sum(
        _delete_in_batches(partial(run, statement, now - period), at_once, most)
        for statement, period in statements
    )


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
    column = rule.model_class._meta.pk.column
    statement = _OLD.format(key=column, table=rule.table, where=rule.condition, order=order)
    keys = [key for (key,) in fetch_all(statement, {**sql_parameters(before), "most": most})]
    # Through the model, so that dependent rows go as well.
    rule.model_class._base_manager.filter(pk__in=keys).delete()
    return len(keys)
