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
        load = commands.add_parser("load", help="load all files or nothing; prints the changes")
        load.add_argument("folder", type=Path, metavar="DIR")
        load.add_argument(
            "--dry-run", action="store_true", help="print what would change, without changing it"
        )
        load.add_argument(
            "--keep-edited",
            action="store_true",
            help="keep objects that were edited in the console since they were loaded",
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
            self.fail("Nothing changed.")
            return
        except Conflict as error:
            self.fail(f"{error.detail} Nothing changed.")
            return
        for change in loaded.changes:
            self._show(change)
        for name in loaded.elsewhere:
            self.line(f"  {name} is in none of the files; not changed")
        for remark in loaded.remarks:
            self.line(remark)
        would = "Dry run: " if dry_run else ""
        kept = f", {loaded.count(KEPT)} kept with edits" if loaded.count(KEPT) else ""
        self.line(
            f"{would}{loaded.count(NEW)} new, {loaded.count(CHANGED)} changed,"
            f" {loaded.count(SAME)} unchanged{kept}."
        )

    def _show(self, change: EntryChange) -> None:
        if change.outcome == SAME:
            return
        edited = f" ({change.edited})" if change.edited else ""
        self.line(f"{MARKS[change.outcome]} {change.kind} {change.name}{edited}")
        if change.outcome == CHANGED:
            for difference in change.differences:
                self.line(f"    {difference}")
