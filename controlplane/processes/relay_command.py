"""`manage.py dataplane --upstream …`: run a relay.

Runs without Django's settings, which need a secret key and cost half of a relay's start.
"""

import os
import secrets
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from controlplane.core.environment_variables import WrongVariable
from controlplane.environment.relay import UPSTREAM, read_relay_environment

from . import command_lines
from .exec_command import add_server_arguments, free_address, replace_process

OPTION = "--upstream"


def is_relay_command(arguments: Sequence[str], variables: Mapping[str, str] = os.environ) -> bool:
    """Return True if the command line `arguments`, or the environment, ask for a relay."""
    if arguments[1:2] != ["dataplane"]:
        return False
    options = [argument.partition("=")[0] for argument in arguments[2:]]
    return OPTION in options or bool(variables.get(UPSTREAM))


def run_relay_command(arguments: Sequence[str]) -> bool:
    """Run the command of a relay; return False if Django has to run it, as to list orders."""
    if "orders" in arguments:
        # Django's settings need a key, and must not create one.
        os.environ.setdefault("SECRET_KEY", secrets.token_urlsafe(32))
        return False
    RelayCommand().run_from_argv([*arguments])
    return True


class RelayCommand(BaseCommand):
    """The command `dataplane` of a relay."""

    help = (
        "Run a relay: a data plane that follows another data plane or relay, and needs neither"
        " PostgreSQL nor Redis nor SECRET_KEY."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_server_arguments(parser)
        add_upstream_argument(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        if options["upstream"]:
            os.environ[UPSTREAM] = options["upstream"]
        try:
            read_relay_environment()
        except WrongVariable as error:
            raise CommandError(str(error), returncode=2) from error
        port, workers = options["port"], options["workers"]
        host = free_address(options["host"], port)
        replace_process(command_lines.relay(host=host, port=port, workers=workers))


def add_upstream_argument(parser: ArgumentParser) -> None:
    parser.add_argument(
        OPTION,
        metavar="URL[,URL…]",
        help=(
            "run as a relay, which follows the data plane or relay at this URL and needs no"
            f" PostgreSQL and no Redis; {UPSTREAM} by default. The token for it is in"
            " SWITCHGEAR_TOKEN or SWITCHGEAR_TOKEN_FILE"
        ),
    )
