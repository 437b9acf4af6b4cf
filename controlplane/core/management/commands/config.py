"""`manage.py config`: load, compare and export the configuration as YAML files."""

import json
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from controlplane.core.clock import db_now
from controlplane.core.configuration import services as configuration
from controlplane.core.configuration.readers import (
    CHANGED,
    KEPT,
    NEW,
    SAME,
    EntryChange,
    Loaded,
    LoadOptions,
)
from controlplane.core.configuration.yaml_writer import SCHEMA_FOLDER
from controlplane.core.errors import Conflict, InvalidInput
from controlplane.core.shell import ShellCommand, shell_actor

MARKS = {NEW: "+", CHANGED: "~", KEPT: "="}
STDOUT = "-"
MAX_NAMED = 5
"""Maximum number of entries in none of the files that the output names."""


class Command(ShellCommand):
    help = (
        "Load, compare and export the configuration as YAML files: services, dependencies,"
        " switches, safety rules, trip policies, thresholds, SLOs, targets and drills."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        commands = parser.add_subparsers(dest="command", required=True)
        load = commands.add_parser("load", help="load all files or nothing; prints the changes")
        load.add_argument("folder", type=Path, metavar="DIR")
        load.add_argument(
            "--dry-run", action="store_true", help="print what would change, without changing it"
        )
        diff = commands.add_parser(
            "diff", help="print what a load would change; exit with 1 if anything would"
        )
        diff.add_argument("folder", type=Path, metavar="DIR")
        for one in (load, diff):
            one.add_argument(
                "--keep-edited",
                action="store_true",
                help="keep entries that were edited in the console since they were loaded",
            )
        export = commands.add_parser("export", help="write the current configuration as files")
        export.add_argument("folder", metavar="DIR", help="- prints all files")
        schema = commands.add_parser("schema", help="write the JSON Schemas of the files")
        schema.add_argument("folder", type=Path, metavar="DIR")

    def handle(self, *args: Any, **options: Any) -> None:
        run: Callable[..., None] = getattr(self, options["command"])
        run(**options)

    def load(self, *, folder: Path, dry_run: bool, keep_edited: bool, **_: Any) -> None:
        loaded = self._load(folder, keep_edited, dry_run=dry_run)
        if loaded is not None:
            self._show_all(loaded, "Dry run: " if dry_run else "")

    def diff(self, *, folder: Path, keep_edited: bool, **_: Any) -> None:
        loaded = self._load(folder, keep_edited, dry_run=True)
        if loaded is not None:
            self._show_all(loaded, "")
            if loaded.count(NEW, CHANGED):
                sys.exit(1)

    def export(self, *, folder: str, **_: Any) -> None:
        texts = configuration.export_texts()
        if folder == STDOUT:
            for name, text in texts.items():
                self.stdout.write(f"--- # {name}\n{text}")
            return
        self._write_files(Path(folder), texts)
        self.schema(folder=Path(folder) / SCHEMA_FOLDER)
        self.line(f"{len(texts)} files written to {folder}. Secrets are not exported.")

    def schema(self, *, folder: Path, **_: Any) -> None:
        schemas = configuration.build_schemas()
        texts = {
            name: json.dumps(one, indent=2, ensure_ascii=False) + "\n"
            for name, one in schemas.items()
        }
        self._write_files(folder, texts)

    def _write_files(self, folder: Path, texts: Mapping[str, str]) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for name, text in texts.items():
                (folder / name).write_text(text, encoding="utf-8")
        except OSError as error:
            self.fail(f"{folder} can't be written: {error}.")

    def _load(self, folder: Path, keep_edited: bool, *, dry_run: bool) -> Loaded | None:
        try:
            options = LoadOptions(
                actor=shell_actor(), now=db_now(), keep_edited=keep_edited, dry_run=dry_run
            )
            return configuration.load_folder(folder, options)
        except InvalidInput as error:
            for place, problems in error.errors.items():
                self.stderr.write(f"{place}: {' '.join(problems)}")
            self.fail("Nothing changed.")
        except Conflict as error:
            self.fail(f"{error.detail} Nothing changed.")
        return None

    def _show_all(self, loaded: Loaded, prefix: str) -> None:
        for change in loaded.changes:
            self._show(change)
        if loaded.elsewhere:
            named = ", ".join(loaded.elsewhere[:MAX_NAMED])
            more = len(loaded.elsewhere) - MAX_NAMED
            rest = f" and {more:,} more" if more > 0 else ""
            self.line(f"In none of the files, unchanged: {named}{rest}.")
        for remark in loaded.remarks:
            self.line(remark)
        kept = f", {loaded.count(KEPT)} kept with edits" if loaded.count(KEPT) else ""
        self.line(
            f"{prefix}{loaded.count(NEW)} new, {loaded.count(CHANGED)} changed,"
            f" {loaded.count(SAME)} unchanged{kept}."
        )

    def _show(self, change: EntryChange) -> None:
        if change.outcome == SAME:
            return
        edited = f" ({change.edited})" if change.edited else ""
        waits = f" (approval {change.approval})" if change.approval else ""
        note = f": {change.note}{waits}" if change.note else ""
        self.line(f"{MARKS[change.outcome]} {change.kind} {change.name}{edited}{note}")
        if change.outcome == CHANGED:
            for difference in change.differences:
                self.line(f"    {difference}")
