"""Base class of management commands, with the acting user and error handling."""

import getpass
import os
import sys
from contextlib import ExitStack
from typing import Any, Literal, NoReturn
from unicodedata import category

from django.core.management.base import BaseCommand, CommandError
from django.db.utils import DatabaseError, InterfaceError, ProgrammingError
from psycopg.errors import UndefinedColumn, UndefinedTable

from controlplane.core.actors import SHELL, Actor, system_actor
from controlplane.core.database_errors import READ_ONLY, find_sqlstate, is_away
from controlplane.core.errors import DomainError

from . import wakeups

ESCAPED = frozenset({"Cc", "Cf", "Zl", "Zp"})
"""Unicode categories of characters that could control the terminal."""


def shell_actor() -> Actor:
    """Return the actor of a command at the server's shell, named by the operating system's user."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):  # A container may run as a user without a passwd entry.
        name = f"uid-{os.getuid()}"
    return system_actor(SHELL + name)


class ShellCommand(BaseCommand):
    """A management command that reports errors in one line on stderr, with exit status 1."""

    requires_system_checks: list[str] | tuple[str, ...] | Literal["__all__"] = []
    is_for_people = True
    """True if a person reads the output; otherwise the command logs."""

    def __init__(self, *args: Any, **options: Any) -> None:
        # Color codes would end up in the input of other programs.
        super().__init__(*args, **{**options, "no_color": True})

    def run_from_argv(self, argv: list[str]) -> None:
        with ExitStack() as stack:
            if self.is_for_people:
                stack.enter_context(wakeups.report_failures_to(self.stderr.write))
            super().run_from_argv(argv)

    def execute(self, *args: Any, **options: Any) -> str | None:
        try:
            return super().execute(*args, **options)
        except DomainError as error:
            raise CommandError(_escape(error.detail)) from error
        except ProgrammingError as error:
            if not isinstance(error.__cause__, UndefinedTable | UndefinedColumn):
                raise
            raise CommandError("The database is not set up: run `manage.py migrate`.") from error
        except (DatabaseError, InterfaceError) as error:
            if not is_away(error):
                raise
            first_line = str(error).splitlines()[0] if str(error) else type(error).__name__
            is_read_only = find_sqlstate(error) == READ_ONLY
            what = "is read-only" if is_read_only else "does not respond"
            raise CommandError(f"The database {what}: {first_line}") from error

    def line(self, text: str = "") -> None:
        """Print one line, escaped, so that names and reasons can't control the terminal."""
        self.stdout.write(_escape(text))

    def fail(self, text: str) -> None:
        """Print an error and exit with status 1."""
        self.stderr.write(_escape(text))
        sys.exit(1)


def _escape(text: str) -> str:
    return "".join(repr(one)[1:-1] if category(one) in ESCAPED else one for one in text)


class ReplacedCommand(BaseCommand):
    """A command that only prints `help`, in place of a Django command that isn't audited."""

    def run_from_argv(self, argv: list[str]) -> NoReturn:
        self.stderr.write(self.help)
        sys.exit(2)

    def handle(self, *args: Any, **options: Any) -> NoReturn:
        raise CommandError(self.help)
