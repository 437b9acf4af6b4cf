"""`manage.py keys`: list and replace the keys that sign snapshots."""

from argparse import ArgumentParser
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.db import transaction

from controlplane.core.audit import services as audit
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict, Unavailable
from controlplane.core.private_files import InvalidFile
from controlplane.core.shell import ShellCommand, shell_actor
from controlplane.core.signatures import SigningKey
from controlplane.core.signing_keys import KeyRing, SigningKeyFile, TooManyKeys
from controlplane.environment.signing_keys import FALLBACKS, KEY


class Command(ShellCommand):
    help = (
        "List or replace the keys that sign snapshots. A replaced key signs for another 24 hours,"
        " in which clients get the new public key."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        commands = parser.add_subparsers(dest="command")
        commands.add_parser("list", help="list the public keys, the current one first (default)")
        rotate = commands.add_parser("rotate", help="replace the current key")
        rotate.add_argument(
            "--drop-old",
            action="store_true",
            help="the previous keys no longer sign, for keys that leaked: clients without the new"
            " public key keep the snapshot they have",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["command"] == "rotate":
            self._rotate(drop_old=options["drop_old"])
        else:
            self._list()

    def _list(self) -> None:
        ring = settings.ENV.signing_keys or _read(settings.ENV.signing_key_file)
        self._show(ring.valid_at(datetime.now(UTC)))

    def _rotate(self, *, drop_old: bool) -> None:
        new, given = SigningKey.generate(), settings.ENV.signing_keys
        if given is not None:
            self._advise(given, new, drop_old=drop_old)
            return
        file = settings.ENV.signing_key_file
        before = _read(file)
        with transaction.atomic():
            audit.record(
                actor=shell_actor(),
                action="signing_key.rotated",
                target="signing-key",
                before={"key": before.current.public.id},
                after={"key": new.public.id, "drop_old": drop_old},
                now=db_now(),
            )
            ring = _rotate(file, new, drop_old=drop_old)
        self._show(ring)
        self.stderr.write(
            "Data planes of this machine sign with the new key within 5 seconds. Give clients and"
            " relays the new public key as SWITCHGEAR_PUBLIC_KEY."
        )

    def _advise(self, ring: KeyRing, new: SigningKey, *, drop_old: bool) -> None:
        """Print the variables to set, because the environment of processes can't be changed."""
        older = [] if drop_old else [key.secret_text for key in ring.signing_keys]
        self.line(f"{KEY}={new.secret_text}")
        self.line(f"{FALLBACKS}={' '.join(older)}")
        self.stderr.write(
            f"{KEY} is set in the environment, so nothing has changed yet. Set both variables in"
            " all processes and restart them. Give clients and relays the new public key,"
            f" {new.public}, and then remove {FALLBACKS}."
        )

    def _show(self, ring: KeyRing) -> None:
        for stored in ring.keys:
            end = stored.valid_until
            state = f"until {end:%Y-%m-%d %H:%M} UTC" if end else "current"
            if end is None and stored is not ring.keys[0]:
                state = "fallback"
            self.line(f"{stored.key.public.id}  {state:26} {stored.key.public}")


def _read(file: SigningKeyFile) -> KeyRing:
    try:
        return file.read_or_create()
    except (InvalidFile, OSError) as error:
        raise Unavailable(f"{file.path} can't be used: {error}.") from error


def _rotate(file: SigningKeyFile, new: SigningKey, *, drop_old: bool) -> KeyRing:
    try:
        return file.rotate(new, datetime.now(UTC), drop_old=drop_old)
    except TooManyKeys as error:
        raise Conflict(f"{error}. Wait until one ends, or use --drop-old.") from error
    except (InvalidFile, OSError) as error:
        raise Unavailable(f"{file.path} can't be written: {error}.") from error
