"""`manage.py migrate`, under an advisory lock.

Migrations run one process at a time and never during the restore of a backup. A lock timeout is
reported in one line.
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

from controlplane.backup.database import MIGRATING
from controlplane.core import threads
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
"""Query for sessions that hold table locks; the age is null without the right to see it."""
MIGRATING_ALONE = 0x5317C8
"""Key of the advisory lock of the one process that migrates."""
RETRY_SECONDS = 0.5


class Command(ShellCommand, migrate.Command):
    requires_system_checks = "__all__"

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            with _hold_locks(self.stderr.write):
                super().handle(*args, **options)
        except OperationalError as error:
            if not isinstance(error.__cause__, LockNotAvailable):
                raise
            raise CommandError(_lock_timeout_advice()) from error


@contextmanager
def _hold_locks(say: Callable[[str], None]) -> Iterator[None]:
    """Context manager: holds the locks against other migrations and against restores of a backup.

    Waits while another process migrates, because Django would let both apply the same migration.
    Raises CommandError while a backup is being restored.
    """
    # A separate connection: after a failure, the migrating one can't be queried.
    lock_connection = threads.unpooled_connection()
    try:
        if not _try_lock(lock_connection, "pg_try_advisory_lock_shared", MIGRATING):
            raise CommandError(
                "A backup is being restored into this database. Wait until it is done, then try"
                " again."
            )
        if not _try_lock(lock_connection, "pg_try_advisory_lock", MIGRATING_ALONE):
            say("Another process is migrating this database. Waiting until it is done…")
            # Polls, because the snapshot of a waiting statement would block the other process's
            # concurrent index builds.
            while not _try_lock(lock_connection, "pg_try_advisory_lock", MIGRATING_ALONE):
                time.sleep(RETRY_SECONDS)
        yield
    finally:
        lock_connection.close()


def _try_lock(lock_connection: BaseDatabaseWrapper, function: str, lock: int) -> bool:
    with lock_connection.cursor() as cursor:
        cursor.execute(f"SELECT {function}(%s)", [lock])
        return bool(cursor.fetchone()[0])


def _lock_timeout_advice() -> str:
    """Return an error text for a lock timeout, with advice and the current lock holders."""
    # On a new connection: the failed one may still be in its transaction.
    with threads.own_connection(), connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('lock_timeout')")
        (timeout,) = cursor.fetchone()
        cursor.execute(HOLDERS)
        holders = [_describe_holder(*row) for row in cursor.fetchall()]
    who = f" The tables are currently locked by {', '.join(holders)}." if holders else ""
    return (
        "The last migration above gave up: other sessions held a lock on one of its tables for"
        f" {timeout}, and it must not block others. It was rolled back; earlier migrations are"
        f" kept.{who} Run migrate again."
    )


def _describe_holder(pid: int, application: str, seconds: int | None) -> str:
    since = "" if seconds is None else f", for {seconds} s"
    return f"process {pid} ({application or 'unnamed'}{since})"
