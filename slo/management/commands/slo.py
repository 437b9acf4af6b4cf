"""`manage.py slo`: imports points and runs backtests from the server's shell.

`import FILE…` creates SLOs from documents of OpenSLO, Sloth or Pyrra. `import-points NAME FILE.csv`
imports history (`ts,good,total`, cumulative); `backtest NAME` prints the evaluation of an SLO's
stored history, step by step.
"""

import json
import sys
from argparse import ArgumentParser, ArgumentTypeError
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError
from django.db import transaction

from controlplane.core.clock import db_now
from controlplane.core.errors import InvalidInput
from controlplane.core.shell import ShellCommand, shell_actor
from slo.arithmetic.evaluate import Evaluation
from slo.arithmetic.minutes import end_of
from slo.backtests import history, replay
from slo.ingest import csv_import
from slo.models import Sli, Slo
from slo.objectives.spec_import import SAME, import_slos, parse_text

WRONG_ARGUMENT = 2
MAX_ERRORS = 20


def parse_moment(text: str) -> datetime:
    try:
        return csv_import.parse_moment(text.strip())
    except ValueError:
        raise ArgumentTypeError(
            f"{text!r} is not a time. Use 2026-11-21T02:10:00Z, or Unix seconds."
        ) from None


def parse_step(text: str) -> timedelta:
    try:
        seconds = int(text)
    except ValueError:
        seconds = 0
    if seconds < 1:
        raise ArgumentTypeError(f"{text!r} is not a whole number of seconds, 1 or more.")
    return timedelta(seconds=seconds)


def read_file(path: str) -> str:
    """Return the text of a file, or of standard input for `-`."""
    try:
        return sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{path} can't be read: {error}") from error


class Command(ShellCommand):
    help = "Import SLOs or the points of one from files, or evaluate stored history again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        kinds = parser.add_subparsers(dest="kind", required=True)
        specs = kinds.add_parser("import", help="import SLOs of OpenSLO, Sloth or Pyrra")
        specs.add_argument("files", nargs="+", help="YAML or JSON files; - for standard input")
        specs.add_argument(
            "--prometheus-url", default="", help="Prometheus server of documents that name none"
        )
        specs.add_argument("--dry-run", action="store_true", help="only show the changes")
        points = kinds.add_parser("import-points", help="import the history of an SLO")
        points.add_argument("name")
        points.add_argument(
            "file", help="CSV with the columns ts,good,total (cumulative); - for standard input"
        )
        past = kinds.add_parser("backtest", help="evaluate the SLO's rules on stored history")
        past.add_argument("name")
        past.add_argument(
            "--start",
            type=parse_moment,
            help="first evaluation; by default the first stored minute",
        )
        past.add_argument(
            "--end", type=parse_moment, help="last evaluation; by default the last stored minute"
        )
        past.add_argument(
            "--step",
            type=parse_step,
            default=parse_step("60"),
            help="interval in seconds (default: 60)",
        )
        past.add_argument(
            "--json", action="store_true", help="print one JSON object per evaluation"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["kind"] == "import":
            self._import_specs(options)
            return
        slo = Slo.objects.present().filter(name=options["name"]).first()
        if slo is None:
            raise CommandError(f"There is no SLO {options['name']}.")
        if options["kind"] == "import-points":
            self._import(slo, options["file"])
        else:
            self._backtest(slo, options)

    def _import_specs(self, options: dict[str, Any]) -> None:
        try:
            raw = [one for path in options["files"] for one in parse_text(read_file(path))]
            with transaction.atomic():
                outcomes, remarks = import_slos(
                    raw, server=options["prometheus_url"], actor=shell_actor(), now=db_now()
                )
                transaction.set_rollback(options["dry_run"])
        except InvalidInput as error:
            raise self._refusal(error) from error
        would = "would be " if options["dry_run"] else ""
        for name, outcome in outcomes.items():
            self.line(f"{name}: {'unchanged' if outcome == SAME else would + outcome}")
        for remark in remarks:
            self.line(f"remark: {remark}")

    @staticmethod
    def _refusal(error: InvalidInput) -> CommandError:
        lines = [f"{where}: {text}" for where, texts in error.errors.items() for text in texts]
        more = [f"… and {len(lines) - MAX_ERRORS} more"] if len(lines) > MAX_ERRORS else []
        return CommandError("\n".join([*lines[:MAX_ERRORS], *more]))

    def _import(self, slo: Slo, path: str) -> None:
        text = read_file(path)
        try:
            outcome = csv_import.import_points(
                slo=slo, text_lines=text.splitlines(), actor=shell_actor(), now=db_now()
            )
        except InvalidInput as error:
            raise self._refusal(error) from error
        self.line(f"{slo.name}: {outcome}")

    def _backtest(self, slo: Slo, options: dict[str, Any]) -> None:
        sli = Sli.objects.filter(slo=slo).first()
        start, end = options["start"], options["end"]
        if start is None or end is None:
            if sli is None or sli.first is None or sli.last is None:
                raise CommandError(f"{slo.name} has no data yet. Import points first.")
            start, end = start or end_of(sli.first), end or end_of(sli.last)
        if end < start:
            raise CommandError("--end must not be before --start.", returncode=WRONG_ARGUMENT)
        found = replay.evaluate_ticks(slo, start=start, end=end, step=options["step"])
        for at, evaluation in found:
            if options["json"]:
                rules = [
                    {"long": one.rule.long, "short": one.rule.short, "state": one.state}
                    for one in evaluation.rules
                ]
                tick = {**history.tick_document(at, evaluation), "rules": rules}
                self.line(json.dumps(tick))
            else:
                self.line(_tick_line(at, evaluation))


def _tick_line(at: datetime, evaluation: Evaluation) -> str:
    rates = "  ".join(
        f"{window} {'?' if rate is None else format(rate, 'g')}"
        for window, rate in evaluation.burn_rates.items()
    )
    firing = ", ".join(one.rule.key for one in evaluation.rules if one.state == "firing")
    return f"{at:%Y-%m-%d %H:%M:%S}  {evaluation.state:7}  {rates}{'  ' if firing else ''}{firing}"
