"""`manage.py backup`: create, verify and restore backups."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction

from controlplane.backup import creation, file
from controlplane.backup.manifest import Manifest
from controlplane.backup.restore import restore
from controlplane.core.audit import services as audit
from controlplane.core.clock import db_now
from controlplane.core.shell import ShellCommand, shell_actor

OTHER_KEY = (
    "SECRET_KEY differs from the one this backup was made with. Everything encrypted or signed with"
    " the old key is lost: second factors (people must set up new ones), single sign-ons in"
    " progress, links in e-mails, and the signed copies on the data planes' disks. Put the old"
    " SECRET_KEY back if you still have it."
)


class Command(ShellCommand):
    help = (
        "Create, check or restore a backup (see docs/restore.md). A backup never contains"
        " SECRET_KEY or the key that signs snapshots."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        commands = parser.add_subparsers(dest="command", required=True)
        create = commands.add_parser("create", help="create a backup of the running installation")
        check = commands.add_parser(
            "check", help="check a backup; exit 1 if it is damaged. Needs no database"
        )
        restore = commands.add_parser(
            "restore", help="restore a backup into an empty database and begin a new epoch"
        )
        for parser in (create, check, restore):
            parser.add_argument("file", type=Path, metavar="FILE")
        restore.add_argument(
            "--over-fresh",
            action="store_true",
            help="drop the tables of a first start, if the installation was never used",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["command"] == "restore":
            self._restore(options["file"], over_fresh=options["over_fresh"])
        else:
            getattr(self, f"_{options['command']}")(options["file"])

    def _create(self, path: Path) -> None:
        manifest = creation.create(path.absolute(), settings.ENV.database.owner_url)
        with transaction.atomic():
            audit.record(
                actor=shell_actor(),
                action="backup.created",
                target="backup",
                after={
                    "sha256": manifest.sha256,
                    "size": manifest.size,
                    "audit_head": manifest.audit_head,
                },
                now=db_now(),
            )
        self._show(manifest)
        self.stderr.write(
            "The backup contains neither SECRET_KEY nor the key that signs snapshots. Store both in"
            " another place than this file."
        )

    def _check(self, path: Path) -> None:
        manifest = file.read_manifest(path)
        self._show(manifest)
        if missing := manifest.missing_migrations():
            self.stderr.write(f"Made by a later release: it has {', '.join(missing[:3])}.")
        self._warn_if_key_differs(manifest)

    def _restore(self, path: Path, *, over_fresh: bool) -> None:
        url = settings.ENV.database.owner_url
        manifest = restore(
            path.absolute(),
            url,
            actor=shell_actor(),
            say=self.stderr.write,
            over_fresh=over_fresh,
        )
        self._show(manifest)
        self._warn_if_key_differs(manifest)

    def _show(self, manifest: Manifest) -> None:
        self.line(f"taken     {manifest.taken_at}, {manifest.installation or 'without a name'}")
        self.line(f"release   {manifest.product}, {len(manifest.migrations)} migrations")
        self.line(f"published epoch {manifest.epoch}, version {manifest.version}")
        head = f"{manifest.audit_head}:{manifest.audit_hash}"
        self.line(f"audit     {manifest.audit_rows} rows, head {head}")
        self.line(f"dump      {manifest.size} bytes, SHA-256 {manifest.sha256}")

    def _warn_if_key_differs(self, manifest: Manifest) -> None:
        if not manifest.matches_secret_key:
            self.stderr.write(OTHER_KEY)
