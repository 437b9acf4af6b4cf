"""Command `manage.py breakers status`, which prints the state of every dependency."""

import json
from argparse import ArgumentParser
from typing import Any

from breakers import resources
from breakers.models import Dependency
from breakers.states import dependency_status
from breakers.states.dependency_status import CLOSED, HALF_OPEN, OPEN, UNKNOWN
from controlplane.core.clock import db_now
from controlplane.core.shell import ShellCommand

WORST_FIRST = (OPEN, HALF_OPEN, UNKNOWN, CLOSED)
AT_ONCE = 500


class Command(ShellCommand):
    help = "Show the state of all breakers."

    def add_arguments(self, parser: ArgumentParser) -> None:
        commands = parser.add_subparsers(dest="command", required=True)
        status = commands.add_parser("status", help="list breakers, open ones first")
        status.add_argument(
            "--json", action="store_true", help="print JSON as in GET /api/v1/breakers/"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        rows = _load_rows()
        if options["json"]:
            self.stdout.write(json.dumps({"results": rows}, ensure_ascii=False, indent=2))
            return
        if not rows:
            self.line("There are no dependencies. To load some: manage.py config load config")
        width = max((len(row["name"]) for row in rows), default=0)
        for row in sorted(rows, key=lambda row: (WORST_FIRST.index(row["state"]), row["name"])):
            self.line(f"{row['name']:{width}}  {_format_row(row)}")


def _load_rows() -> list[dict[str, Any]]:
    now = db_now()
    found, last = [], 0
    registered = Dependency.objects.registered().order_by("id")
    while page := list(registered.filter(pk__gt=last)[:AT_ONCE]):
        found += resources.breaker_resources(dependency_status.load_statuses(page, now), now)
        last = page[-1].pk
    return found


def _format_row(row: dict[str, Any]) -> str:
    counts = " ".join(f"{count} {state}" for state, count in row["counts"].items() if count)
    stale = f", {row['stale']} stale" if row["stale"] else ""
    line = f"{row['state']:9}  {row['criticality']:8}  {counts or 'no instances'}{stale}"
    if row["failure_rate"] is not None:
        line += f"  failures {row['failure_rate']:.1%}"
    if override := row["override"]:
        obeyed = override["acknowledged"]
        line += (
            f"  {override['mode']} until {override['expires_at']} by {override['set_by']}"
            f" ({obeyed['applied']} of {obeyed['instances']} apply it)"
        )
    return line
