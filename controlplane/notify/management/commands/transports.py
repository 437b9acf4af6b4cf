"""`manage.py transports`: list the transports, their requirements, and which are configured."""

from argparse import ArgumentParser
from typing import Any

from controlplane.core.shell import ShellCommand
from controlplane.notify.transports import destinations


class Command(ShellCommand):
    help = "List the transports that can deliver messages."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--markdown", action="store_true", help="print the table in docs/notifications.md"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["markdown"]:
            for row in destinations.docs_table().splitlines():
                self.line(row)
            return
        for transport in destinations.channel_transports():
            needs = "; or ".join(row.needs for row in transport.docs).replace("`", "")
            state = "configured" if transport.is_configured() else "not configured"
            self.line(f"{transport.key:<12} {state:<14} {needs}")
