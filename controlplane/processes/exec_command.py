"""Helpers of management commands that replace themselves by another process."""

import os
import socket
import sys
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Sequence
from typing import NoReturn

import psycopg
from django.core.management.base import CommandError
from psycopg import errors, sql

from controlplane import environment
from controlplane.environment import Environment

CONNECT_SECONDS = 3


def replace_process(arguments: Sequence[str]) -> NoReturn:
    """Replace this process by Python with these arguments; the process id stays."""
    # Makes the application importable from any working directory.
    path = [str(environment.ROOT), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, path))
    os.execv(sys.executable, [sys.executable, *arguments])  # noqa: S606 - no shell, no input


def free_address(host: str, port: int) -> str:
    """Return the IP address of `host`, after checking that a server can bind it and the port.

    Raises CommandError with exit status 2. Without this check, two servers would share the port.
    """
    try:
        kind, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(kind, socket.SOCK_STREAM) as candidate:
            candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            candidate.bind(address)
    except OSError as error:
        message = f"--host {host} --port {port}: {error.strerror or error}"
        raise CommandError(message, returncode=2) from error
    return str(address[0])


def add_server_arguments(parser: ArgumentParser) -> None:
    """Add the options of a data plane's server."""
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument("--port", type=whole_number(1, 65535), default=8001)
    parser.add_argument(
        "--workers",
        type=whole_number(1, 64),
        default=1,
        help="processes that share the port, each with its own connection to the database or"
        " upstream",
    )


def whole_number(low: int, high: int) -> Callable[[str], int]:
    """Return an argparse type that accepts whole numbers from `low` to `high`."""

    def parse(text: str) -> int:
        if not (text.isascii() and text.isdigit() and low <= int(text) <= high):
            raise ArgumentTypeError(f"must be a whole number from {low} to {high}")
        return int(text)

    return parse


def check_login(environment: Environment) -> None:
    """Raise CommandError (exit status 2) if the database login can't take the application's role.

    The check is skipped if there is a snapshot on disk, or if the database is unreachable.
    """
    role, url = environment.database.assume_role, environment.database.url
    if role is None or (environment.data_dir / "snapshot" / "current").exists():
        return
    try:
        with psycopg.connect(url, connect_timeout=CONNECT_SECONDS, autocommit=True) as connection:
            connection.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(role)))
    except (errors.InvalidParameterValue, errors.InsufficientPrivilege) as error:
        first_line = str(error).splitlines()[0]
        raise CommandError(
            "DATABASE_OWNER_URL: is not set, so the login of DATABASE_URL must own the tables, but"
            f" it can't switch to the role {role}: {first_line}. Set DATABASE_OWNER_URL to the"
            " owner's login (without password), or run `manage.py provision` first if there is"
            " only one login.",
            returncode=2,
        ) from error
    except psycopg.OperationalError:
        pass
