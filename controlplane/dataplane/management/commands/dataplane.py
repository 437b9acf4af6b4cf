"""`manage.py dataplane`: run a standalone data plane."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings

from controlplane.core.shell import ShellCommand
from controlplane.processes import command_lines
from controlplane.processes.exec_command import (
    check_login,
    free_address,
    replace_process,
    whole_number,
)


class Command(ShellCommand):
    help = (
        "Run a data plane, which serves snapshots and checks to services and stores their reports."
        " Starts without PostgreSQL and Redis and connects when they are available."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
        parser.add_argument("--port", type=whole_number(1, 65535), default=8001)
        parser.add_argument(
            "--workers",
            type=whole_number(1, 64),
            default=1,
            help="processes that share the port, each with its own database connection",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        port, workers = options["port"], options["workers"]
        host = free_address(options["host"], port)
        check_login(settings.ENV)
        replace_process(command_lines.dataplane(host=host, port=port, workers=workers))
