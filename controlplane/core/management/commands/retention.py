"""`manage.py retention`: show retention periods and row counts, most rows due first."""

from argparse import ArgumentParser
from datetime import datetime, timedelta
from typing import Any

from django.apps import apps
from django.conf import settings
from django.db import transaction

from controlplane.core.clock import db_now
from controlplane.core.errors import InvalidInput
from controlplane.core.retention import RETENTION_RULES, RetentionRule
from controlplane.core.retention.rules import (
    PERMANENT_TABLES,
    TableSize,
    find_period_errors,
    measure_table,
)
from controlplane.core.shell import ShellCommand
from controlplane.core.sql import execute
from controlplane.core.ticks import list_ticks

COUNT_SECONDS = 60
"""Statement timeout of a count."""


class Command(ShellCommand):
    help = (
        "Show how long data is kept, most rows due first. Periodic tasks delete what is due;"
        " KEPT_DAYS changes retention."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_mutually_exclusive_group()
        actions.add_argument(
            "--dry-run", action="store_true", help="list only rules with rows to delete now"
        )
        actions.add_argument("--now", action="store_true", help="delete due rows now")
        parser.add_argument("--only", metavar="NAME", help="one rule")

    def handle(self, *args: Any, **options: Any) -> None:
        if errors := list(find_period_errors(settings.KEPT_DAYS)):
            raise InvalidInput({"KEPT_DAYS": errors})
        name, now = options["only"], db_now()
        if name is not None and name not in RETENTION_RULES:
            raise InvalidInput({"--only": [f"There is no retention rule {name}."]})
        rules = [RETENTION_RULES[key] for key in ([name] if name else sorted(RETENTION_RULES))]
        if options["now"]:
            for tick in sorted({rule.tick for rule in rules}):
                self.line(f"{tick}: {list_ticks()[tick].function(now)} deleted")
            return
        measured = [(rule, _measure(rule, now)) for rule in rules]
        measured.sort(key=lambda pair: -pair[1].due)
        for rule, size in measured:
            if size.due or not options["dry_run"]:
                self._show(rule, size)
        if not options["dry_run"] and not name:
            for _, table in sorted(PERMANENT_TABLES.items()):
                count = apps.get_model(table.model)._base_manager.count()
                self.line(f"{table.model:36} lasting {count:>9} rows  {table.why}")
        self.line(f"{sum(size.due for _, size in measured)} rows are due for deletion.")

    def _show(self, rule: RetentionRule, size: TableSize) -> None:
        oldest = f"{size.oldest:%Y-%m-%d}" if size.oldest else "-"
        self.line(
            f"{rule.name:26} {_format_period(rule.effective_period):>9} {size.rows:>9} rows"
            f"  oldest {oldest:10} {size.due:>8} due  {rule.table}"
        )


def _measure(rule: RetentionRule, now: datetime) -> TableSize:
    with transaction.atomic():
        execute(f"SET LOCAL statement_timeout = '{COUNT_SECONDS}s'")
        return measure_table(rule, now)


def _format_period(period: timedelta) -> str:
    if period.seconds or not period:
        return f"{round(period.total_seconds() / 3600)} h"
    return f"{period.days} d"
