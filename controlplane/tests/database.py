"""The test database: cloned from one migrated template, and restored after each transactional test.

Django's own flush truncates every table and sends `post_migrate` again. Most tests write to a few
tables only, so here only the tables that differ from the migrated state are emptied and refilled.
"""

import fcntl
import hashlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.apps import apps
from django.core.management import call_command
from django.db import OperationalError, connection, transaction
from django.db.backends.utils import CursorWrapper
from psycopg.errors import DeadlockDetected
from psycopg.pq import TransactionStatus
from pytest_django import DjangoDbBlocker

from controlplane.core.threads import OWNER_NAME

# Each has one row, and a new one after every test: no two tests share an epoch.
SINGLETONS = {
    "core_credentials": "(id, revision) VALUES (1, 1)",
    "switches_publication": "(id, epoch, version, published_at)"
    " VALUES (1, gen_random_uuid(), 0, clock_timestamp())",
    "switches_publishedversion": "(epoch, version, published_at, timeline)"
    " SELECT epoch, version, published_at, switches_timeline() FROM switches_publication",
    "core_degradation": "(id, revision, level, causes, since)"
    " VALUES (1, 0, 0, '[]', clock_timestamp())",
    "breakers_registry": "(id, version, changed_at) VALUES (1, 0, clock_timestamp())",
}
AUDIT_TABLE, AUDIT_TRIGGER = "core_auditentry", "core_audit_append_only"
# Deleted rows stay in a table's file until it is truncated, and make it slower to read.
MAX_TABLE_BYTES = 512 * 1024
MAX_ATTEMPTS = 5
BUSY = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
  AND state <> 'idle'
"""


class InitialState:
    """The rows that migrations made, and the means to bring them back."""

    def __init__(self) -> None:
        tables = connection.introspection.django_table_names(only_existing=True)
        self._tables = sorted(set(tables) - set(SINGLETONS))
        self._function_in: object = None
        with connection.cursor() as cursor:
            self._rows = {
                table: rows for table in self._tables if (rows := _copy_out(cursor, table))
            }
            self._digest = self._digests(cursor)

    def restore(self) -> None:
        """Undo commits and session settings made since; retry if other locks interfere."""
        raw = connection.connection
        is_idle = raw is not None and raw.info.transaction_status == TransactionStatus.IDLE
        if not is_idle or not connection.is_usable():
            connection.close()
        with connection.cursor() as cursor:
            cursor.execute("RESET ALL")
        for _ in range(MAX_ATTEMPTS - 1):
            try:
                return self._restore()
            except OperationalError as error:
                if not isinstance(error.__cause__, DeadlockDetected):
                    raise
        return self._restore()

    def restore_late_writes(self) -> None:
        """Undo what a thread or process of the last test committed after the restore."""
        with connection.cursor() as cursor:
            changed = self._changed(cursor)
        if changed:
            self.restore()

    def _restore(self) -> None:
        with connection.cursor() as cursor:
            wait_for_others(cursor)  # Within a transaction, sessions would look busy to its end.
        with transaction.atomic(), connection.cursor() as cursor:
            # On a busy machine it takes long enough for `lock_holders` to end it.
            cursor.execute("SELECT set_config('application_name', %s, true)", [OWNER_NAME])
            bloated = self._has_bloat(cursor)
            changed = self._tables if bloated else self._changed(cursor)
            emptied = [*changed, *SINGLETONS]
            cursor.execute(f"ALTER TABLE {AUDIT_TABLE} DISABLE TRIGGER {AUDIT_TRIGGER}")
            if bloated:
                cursor.execute(f"TRUNCATE {', '.join(emptied)}")
            else:
                cursor.execute("; ".join(f"DELETE FROM {table}" for table in emptied))
            cursor.execute(
                "; ".join(f"INSERT INTO {name} {row}" for name, row in SINGLETONS.items())
            )
            for table in set(changed) & set(self._rows):
                _copy_in(cursor, table, self._rows[table])
            # A table whose checks are pending can't be altered.
            cursor.execute(
                "SET CONSTRAINTS ALL IMMEDIATE;"
                f"ALTER TABLE {AUDIT_TABLE} ENABLE TRIGGER {AUDIT_TRIGGER}"
            )

    def _has_bloat(self, cursor: CursorWrapper) -> bool:
        cursor.execute(
            "SELECT max(pg_relation_size(oid)) FROM pg_class"
            " WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
            " AND relpages > 0 AND NOT relname = ANY(%s)",
            [list(self._rows)],
        )
        return (cursor.fetchone()[0] or 0) > MAX_TABLE_BYTES

    def _changed(self, cursor: CursorWrapper) -> list[str]:
        digests = self._digests(cursor)
        return [table for table, digest in digests.items() if digest != self._digest.get(table)]

    def _digests(self, cursor: CursorWrapper) -> dict[str, str]:
        """Return a digest of each table with rows of migrations, and the names of others with rows.

        In a function, each query is planned once per connection: together that takes 4 ms.
        """
        if self._function_in is not connection.connection:
            queries = "; ".join(f"RETURN QUERY {query}" for query in self._queries())
            cursor.execute(
                "CREATE OR REPLACE FUNCTION pg_temp.digests()"
                " RETURNS TABLE (name text, digest text)"
                f" LANGUAGE plpgsql AS $$ BEGIN {queries}; END $$"
            )
            self._function_in = connection.connection
        cursor.execute("SELECT * FROM pg_temp.digests()")
        return dict(cursor.fetchall())

    def _queries(self) -> Iterator[str]:
        for table in self._tables:
            if table in self._rows:
                yield (
                    f"SELECT '{table}', count(*) || ' ' ||"
                    f" coalesce(sum(hashtextextended(t::text, 0)), 0) FROM {table} t"
                )
            else:
                yield f"SELECT '{table}', 'occupied' WHERE EXISTS (SELECT FROM {table})"


@contextmanager
def arranged_once(blocker: DjangoDbBlocker) -> Iterator[None]:
    """A transaction around several tests, for fixtures of their class or module that write rows.

    Each test's own transaction becomes a savepoint in it, so that every test starts from what was
    arranged once. None of the tests may be a transactional one.
    """
    with blocker.unblock(), transaction.atomic():
        connection.atomic_blocks[-1]._from_testcase = True  # type: ignore[attr-defined]
        yield
        transaction.set_rollback(True)


def wait_for_others(cursor: CursorWrapper) -> None:
    """Wait up to 5 s for abandoned queries that still run in their threads: they hold locks."""
    for _ in range(500):
        cursor.execute(BUSY)
        if cursor.fetchone() == (0,):
            return
        time.sleep(0.01)


def make_template(lock: Path) -> str:
    """Return the name of the migrated template; the first worker makes it, others wait at `lock`.

    The name is a digest of the migrations, so that a server that stays (`TEST_DATABASE_URL`)
    never lends the schema of another version.
    """
    template = f"switchgear_test_{_migrations_digest()}"
    with locked(lock):
        with connection._nodb_cursor() as cursor:
            cursor.execute("SELECT FROM pg_database WHERE datname = %s", [template])
            if cursor.fetchone() is not None:
                return template
            cursor.execute(f"CREATE DATABASE {template}")
        name = connection.settings_dict["NAME"]
        connection.close()
        connection.settings_dict["NAME"] = template
        try:
            call_command("migrate", verbosity=0, interactive=False)
        finally:
            connection.close()
            connection.settings_dict["NAME"] = name
    return template


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock that test workers share, by this file."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _migrations_digest() -> str:
    folders = [Path(app.path) / "migrations" for app in apps.get_app_configs()]
    files = sorted(file for folder in folders for file in folder.glob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]


def _copy_out(cursor: CursorWrapper, table: str) -> bytes:
    with cursor.copy(f"COPY {table} TO STDOUT") as rows:
        return b"".join(rows)


def _copy_in(cursor: CursorWrapper, table: str, rows: bytes) -> None:
    with cursor.copy(f"COPY {table} FROM STDIN") as copy:
        copy.write(rows)
