"""`manage.py backup`: create, verify and restore backups."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction

from controlplane.core.audit import services as audit
from controlplane.core.backup import creation, file
from controlplane.core.backup.manifest import Manifest
from controlplane.core.backup.restore import restore
from controlplane.core.clock import db_now
from controlplane.core.shell import ShellCommand, shell_actor

LOST = (
    "SECRET_KEY is another than when this backup was made. What it had encrypted or signed is lost:"
    " second factors (people set up new ones), single sign-on under way, links in e-mails, and the"
    " signed copies on the data planes' disks. Put the old SECRET_KEY back if you still have it."
)


class Command(ShellCommand):
    help = "Make, check or restore a backup (see docs/restore.md). SECRET_KEY is never in one."

    def add_arguments(self, parser: ArgumentParser) -> None:
        commands = parser.add_subparsers(dest="command", required=True)
        create = commands.add_parser("create", help="write a backup, while everything runs")
        check = commands.add_parser("check", help="exit 1 unless it is whole; needs no database")
        restore = commands.add_parser(
            "restore", help="restore it into the empty database, and begin a new epoch"
        )
        for parser in (create, check, restore):
            parser.add_argument("file", type=Path, metavar="FILE")
        restore.add_argument(
            "--over-fresh",
            action="store_true",
            help="drop what a first start has made in it, if nobody has used that yet",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["command"] == "restore":
            self._restore(options["file"], over_fresh=options["over_fresh"])
        else:
            getattr(self, f"_{options['command']}")(options["file"])

    def _create(self, path: Path) -> None:
        said = creation.create(path.absolute(), settings.ENV.database.owner_url)
        with transaction.atomic():
            audit.record(
                actor=shell_actor(),
                action="backup.created",
                target="backup",
                after={"sha256": said.sha256, "size": said.size, "audit_head": said.audit_head},
                now=db_now(),
            )
        self._show(said)
        self.stderr.write("Keep SECRET_KEY, in another place than this file: it is not in it.")

    def _check(self, path: Path) -> None:
        said = file.read_manifest(path)
        self._show(said)
        if unknown := said.unknown_here():
            self.stderr.write(f"Made by a later release: it has {', '.join(unknown[:3])}.")
        self._tell_of_key(said)

    def _restore(self, path: Path, *, over_fresh: bool) -> None:
        url = settings.ENV.database.owner_url
        said = restore(
            path.absolute(),
            url,
            actor=shell_actor(),
            say=self.stderr.write,
            over_fresh=over_fresh,
        )
        self._show(said)
        self._tell_of_key(said)

    def _show(self, said: Manifest) -> None:
        self.line(f"taken     {said.taken_at}, {said.installation or 'without a name'}")
        self.line(f"release   {said.product}, {len(said.migrations)} migrations")
        self.line(f"published epoch {said.epoch}, version {said.version}")
        self.line(f"audit     {said.audit_rows} rows, head {said.audit_head}:{said.audit_hash}")
        self.line(f"dump      {said.size} bytes, SHA-256 {said.sha256}")

    def _tell_of_key(self, said: Manifest) -> None:
        if not said.is_of_this_key:
            self.stderr.write(LOST)
