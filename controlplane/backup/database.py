"""Access to the database that is backed up or restored, with its owner's login."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import psycopg
from django.db import connection
from psycopg import sql

from controlplane.backup.manifest import Manifest
from controlplane.core.errors import Conflict, Unavailable
from controlplane.core.health import RESTORE_MARK
from controlplane.core.registered_sql import USE_QUERIES
from controlplane.core.threads import OWNER_NAME

CONNECT_SECONDS = 10
MIGRATING = 0x5317C7
"""Key of the advisory lock that migrations share and a restore holds exclusively."""

# Tables of extensions belong to the server and needn't be removed.
_TABLES = """
SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace
AND relkind IN ('r', 'p', 'v', 'm', 'f') AND relname <> %s
AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass
                AND objid = pg_class.oid AND deptype = 'e')
ORDER BY relname
"""
_FUNCTIONS = """
SELECT oid::regprocedure::text FROM pg_proc
WHERE pronamespace = current_schema()::regnamespace AND proname ~ '^(core|switches|breakers|slo)_'
AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_proc'::regclass
                AND objid = pg_proc.oid AND deptype = 'e')
"""

Database: TypeAlias = "psycopg.Connection[tuple[Any, ...]]"


@contextmanager
def connect(url: str, *, autocommit: bool = False) -> Iterator[Database]:
    """Context manager: a connection to the database at `url` that `database.lock_holders` spares.

    Raises :class:`Unavailable` with PostgreSQL's message if the connection or a statement fails.
    """
    try:
        with psycopg.connect(
            url,
            connect_timeout=CONNECT_SECONDS,
            autocommit=autocommit,
            fallback_application_name=OWNER_NAME,
        ) as found:
            yield found
    except psycopg.Error as error:
        first_line = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise Unavailable(f"PostgreSQL: {first_line}") from error


def fetch_value(database: Database, statement: str, *values: str | int) -> Any:
    """Run a query; return the first value of its first row, or None."""
    row = database.execute(statement.encode(), values).fetchone()
    return row[0] if row else None


def list_tables(database: Database) -> list[str]:
    """Return the names of all tables and views of the schema, except the restore mark's table."""
    return [name for (name,) in database.execute(_TABLES, [RESTORE_MARK]).fetchall()]


def read_mark(database: Database) -> str | None:
    """Return the restore mark: the SHA-256 of the backup being restored; None if none is."""
    if not fetch_value(database, "SELECT to_regclass(%s) IS NOT NULL", RESTORE_MARK):
        return None
    return str(fetch_value(database, "SELECT max(sha256) FROM core_restoring"))


def is_restored(database: Database, manifest: Manifest) -> bool:
    """Return True if an interrupted restore has already filled the tables from this backup.

    The backup's last audit row must be present. Tables alone prove nothing, because the first start
    of an installation may have created them.
    """
    if read_mark(database) != manifest.sha256 or "core_auditentry" not in list_tables(database):
        return False
    found = "SELECT hash FROM core_auditentry WHERE id = %s"
    return (
        not manifest.audit_head
        or fetch_value(database, found, manifest.audit_head) == manifest.audit_hash
    )


def drop_fresh_tables(database: Database) -> None:
    """Drop the tables that the first start of an installation created.

    Raises :class:`Conflict` if the installation has been used, or other tables exist.
    """
    present = list_tables(database)
    used = any(
        fetch_value(database, query) for table, query in USE_QUERIES.items() if table in present
    )
    if not present:
        return
    own = {*connection.introspection.django_table_names(), "django_migrations"}
    if others := sorted(set(present) - own):
        raise Conflict(
            f"This database also contains other data, such as {others[0]}. Restore into an empty"
            " database."
        )
    if used:
        raise Conflict(
            "This database is in use: someone has signed in, created a token or engaged a switch."
            " Restore into an empty database."
        )
    functions = [name for (name,) in database.execute(_FUNCTIONS).fetchall()]
    with database.transaction():
        database.execute("SET LOCAL lock_timeout = '30s'")
        names = sql.SQL(", ").join(map(sql.Identifier, present))
        database.execute(sql.SQL("DROP TABLE {}").format(names))
        for name in functions:  # Quoted by PostgreSQL.
            database.execute(f"DROP FUNCTION {name}".encode())
