"""`manage.py migrate`, with a lock.

It runs once at a time, refuses a database that a backup is being restored into, and reports a lock
timeout in one line.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.core.management.base import CommandError
from django.core.management.commands import migrate
from django.db import OperationalError, connection
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg.errors import LockNotAvailable

from controlplane.core import threads
from controlplane.core.backup.database import MIGRATING
from controlplane.core.shell import ShellCommand

HOLDERS = """
SELECT pid, application_name, extract(epoch FROM clock_timestamp() - xact_start)::int
FROM pg_stat_activity
WHERE pid <> pg_backend_pid() AND pid IN (
    SELECT l.pid FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
    WHERE l.granted AND c.relnamespace = current_schema()::regnamespace
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
)
ORDER BY xact_start NULLS LAST LIMIT 3
"""
"""The age is null without the right to see another login's sessions."""
MIGRATING_ALONE = 0x5317C8
"""The advisory lock of the one process that migrates."""
LOOK_SECONDS = 0.5


class Command(ShellCommand, migrate.Command):
    requires_system_checks = "__all__"

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            with _exclusively(self.stderr.write):
                super().handle(*args, **options)
        except OperationalError as error:
            if not isinstance(error.__cause__, LockNotAvailable):
                raise
            raise CommandError(_gave_up()) from error


@contextmanager
def _exclusively(say: Callable[[str], None]) -> Iterator[None]:
    """Keep other migrations and restores of a backup from beginning within.

    Waits while another process migrates: Django would let both apply the same migration. Raises
    CommandError while the tables of a backup are being restored.
    """
    # A separate connection: after a failure, the migrating one can't be queried.
    beside = threads.unpooled_connection()
    try:
        if not _locked(beside, "pg_try_advisory_lock_shared", MIGRATING):
            raise CommandError(
                "A backup is being restored into this database. Wait until that is done, then try"
                " again."
            )
        if not _locked(beside, "pg_try_advisory_lock", MIGRATING_ALONE):
            say("Another process is migrating this database. Waiting until it is done…")
            # No statement that waits: an index is built concurrently once none is older than it.
            while not _locked(beside, "pg_try_advisory_lock", MIGRATING_ALONE):
                time.sleep(LOOK_SECONDS)
        yield
    finally:
        beside.close()


def _locked(beside: BaseDatabaseWrapper, function: str, lock: int) -> bool:
    with beside.cursor() as cursor:
        cursor.execute(f"SELECT {function}(%s)", [lock])
        return bool(cursor.fetchone()[0])


def _gave_up() -> str:
    """Return advice for a lock timeout, with the current lock holders."""
    # Beside the one that failed, which may still be in its transaction.
    with threads.own_connection(), connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('lock_timeout')")
        (patience,) = cursor.fetchone()
        cursor.execute(HOLDERS)
        found = [_named(*row) for row in cursor.fetchall()]
    who = f" Just now tables are held by {', '.join(found)}." if found else ""
    return (
        f"The last migration named above gave up: others held a table of it for {patience}, and"
        f" nobody is to wait behind it. It is undone, those before it stay.{who} Run it again."
    )


def _named(pid: int, application: str, seconds: int | None) -> str:
    since = "" if seconds is None else f", for {seconds} s"
    return f"process {pid} ({application or 'unnamed'}{since})"
