"""`manage.py dataplane`: the data plane by itself, beside or far away from the console."""

import os
import socket
import sys
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable
from typing import Any

from django.core.management.base import CommandError

from controlplane import environment, serving
from controlplane.core.shell import ShellCommand


class Command(ShellCommand):
    help = (
        "Serve what services poll, and nothing else. Starts without PostgreSQL and Redis and "
        "follows them as soon as they answer."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="the address to listen on")
        parser.add_argument("--port", type=_number(1, 65535), default=8001)
        parser.add_argument(
            "--workers",
            type=_number(1, 64),
            default=1,
            help="processes on the port, each following the database by itself",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        arguments = serving.arguments(
            "controlplane.dataplane:app",
            host=_free_address(options["host"], options["port"]),
            port=options["port"],
            workers=options["workers"],
        )
        # So that the application is found from any folder; what is said relative to this one stays.
        path = [str(environment.ROOT), os.environ.get("PYTHONPATH", "")]
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, path))
        os.execv(sys.executable, [sys.executable, *arguments])  # noqa: S606 - no shell, no input


def _free_address(host: str, port: int) -> str:
    """The IP address of `host`. The server would share a port with whoever has it already.

    Raises CommandError, with status 2, if that is somebody, or `host` is not an address here.
    """
    try:
        kind, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(kind, socket.SOCK_STREAM) as candidate:
            candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            candidate.bind(address)
    except OSError as error:
        said = f"--host {host} --port {port}: {error.strerror or error}"
        raise CommandError(said, returncode=2) from error
    return str(address[0])


def _number(low: int, high: int) -> Callable[[str], int]:
    def parsed(text: str) -> int:
        if not (text.isascii() and text.isdigit() and low <= int(text) <= high):
            raise ArgumentTypeError(f"must be a whole number from {low} to {high}")
        return int(text)

    return parsed
