"""`manage.py config load DIR`: load services, dependencies, channels and objectives from files."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from controlplane.core.clock import db_now
from controlplane.core.configuration import services as configuration
from controlplane.core.configuration.services import CHANGED, KEPT, NEW, SAME, EntryChange
from controlplane.core.errors import Conflict, InvalidInput
from controlplane.core.shell import ShellCommand, shell_actor

MARKS = {NEW: "+", CHANGED: "~", KEPT: "="}


class Command(ShellCommand):
    help = "Load services, dependencies, channels and objectives from a folder of YAML files."

    def add_arguments(self, parser: ArgumentParser) -> None:
        commands = parser.add_subparsers(dest="command", required=True)
        load = commands.add_parser("load", help="all of it or nothing; prints what changes")
        load.add_argument("folder", type=Path, metavar="DIR")
        load.add_argument("--dry-run", action="store_true", help="only print what would change")
        load.add_argument(
            "--keep-edited",
            action="store_true",
            help="leave alone what was changed in the console after it was loaded",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        dry_run: bool = options["dry_run"]
        try:
            loaded = configuration.load_folder(
                options["folder"],
                keep_edited=options["keep_edited"],
                dry_run=dry_run,
                actor=shell_actor(),
                now=db_now(),
            )
        except InvalidInput as error:
            for place, problems in error.errors.items():
                self.stderr.write(f"{place}: {' '.join(problems)}")
            self.fail("Nothing was changed.")
            return
        except Conflict as error:
            self.fail(f"{error.detail} Nothing was changed.")
            return
        for change in loaded.changes:
            self._show(change)
        for name in loaded.elsewhere:
            self.line(f"  {name} stands in no file; left alone")
        for remark in loaded.remarks:
            self.line(remark)
        would = "Would be: " if dry_run else ""
        kept = f", {loaded.count(KEPT)} kept as edited" if loaded.count(KEPT) else ""
        self.line(
            f"{would}{loaded.count(NEW)} new, {loaded.count(CHANGED)} changed,"
            f" {loaded.count(SAME)} the same{kept}."
        )

    def _show(self, change: EntryChange) -> None:
        if change.outcome == SAME:
            return
        edited = f" ({change.edited})" if change.edited else ""
        self.line(f"{MARKS[change.outcome]} {change.kind} {change.name}{edited}")
        if change.outcome == CHANGED:
            for difference in change.differences:
                self.line(f"    {difference}")
