"""`manage.py sample list|clear|load`: the sample configuration that Switchgear ships."""

from argparse import ArgumentParser
from typing import Any

from controlplane.core.clock import db_now
from controlplane.core.configuration import samples
from controlplane.core.configuration.readers import NEW, SampleItem
from controlplane.core.errors import InvalidInput
from controlplane.core.shell import ShellCommand, shell_actor


class Command(ShellCommand):
    help = "List, clear or load the sample configuration."

    def add_arguments(self, parser: ArgumentParser) -> None:
        commands = parser.add_subparsers(dest="command", required=True)
        commands.add_parser("list", help="what clearing would remove, and what it would keep")
        clear = commands.add_parser("clear", help="remove what is not in use")
        clear.add_argument("--reason", required=True, help="recorded in the audit trail")
        commands.add_parser("load", help="load what is missing")

    def handle(self, *args: Any, **options: Any) -> None:
        getattr(self, f"_{options['command']}")(options)

    def _list(self, _options: dict[str, Any]) -> None:
        self._print_items(samples.list_items(), "would be removed")

    def _clear(self, options: dict[str, Any]) -> None:
        try:
            items = samples.clear(reason=options["reason"], actor=shell_actor(), now=db_now())
        except InvalidInput as error:
            self.fail(" ".join(error.errors["reason"]))
            return
        self._print_items(items, "removed")

    def _load(self, _options: dict[str, Any]) -> None:
        loaded = samples.load(actor=shell_actor(), now=db_now())
        self.line(f"{loaded.count(NEW)} entries loaded.")

    def _print_items(self, items: list[SampleItem], verb: str) -> None:
        if not items:
            self.line("There is no sample configuration.")
            return
        for item in items:
            self.line(f"{item.kind} {item.name}: {f'kept, {item.kept}' if item.kept else verb}")
        kept = sum(bool(item.kept) for item in items)
        self.line(f"{len(items) - kept} {verb}, {kept} kept.")
