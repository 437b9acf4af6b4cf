"""Command `manage.py epoch`: begin a new epoch of snapshot versions after a database restore."""

from argparse import ArgumentParser
from typing import Any

from controlplane.core.clock import db_now
from controlplane.core.shell import ShellCommand, shell_actor
from switches import services
from switches.models import Publication


class Command(ShellCommand):
    help = (
        "Begin a new epoch after restoring a backup (see docs/restore.md). Without it, services and"
        " data planes that have seen later versions ignore the restored state."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        commands = parser.add_subparsers(dest="command", required=True)
        begin = commands.add_parser("begin", help="publish the current state as a new epoch")
        begin.add_argument("--reason", required=True, help="what was restored, and its backup time")
        commands.add_parser("show", help="print the current epoch and version")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["command"] == "begin":
            services.begin_epoch(reason=options["reason"], actor=shell_actor(), now=db_now())
        head = Publication.objects.get(pk=1)
        self.line(
            f"epoch {head.epoch}  version {head.version}  {head.published_at:%Y-%m-%d %H:%M} UTC"
        )
