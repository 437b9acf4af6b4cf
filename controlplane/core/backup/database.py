"""The database that a backup is made of, or restored into, as its owner sees it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import psycopg
from django.db import connection
from psycopg import sql

from controlplane.core.backup.manifest import Manifest
from controlplane.core.errors import Conflict, Unavailable
from controlplane.core.health import RESTORE_MARK
from controlplane.core.threads import OWNER_NAME

CONNECT_SECONDS = 10
MIGRATING = 0x5317C7
"""An advisory lock, shared by migrations and exclusive for a restore."""

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
_USED = {
    "core_user": "SELECT EXISTS (SELECT FROM core_user WHERE last_login IS NOT NULL)",
    "core_token": "SELECT EXISTS (SELECT FROM core_token)",
    "switches_episode": "SELECT EXISTS (SELECT FROM switches_episode)",
}

Database: TypeAlias = "psycopg.Connection[tuple[Any, ...]]"


@contextmanager
def connected(url: str, *, autocommit: bool = False) -> Iterator[Database]:
    """Connect to the database at `url` with the name of an owner that is never terminated.

    Raises :class:`Unavailable` with PostgreSQL's message if it refuses or is unreachable.
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


def asked(database: Database, statement: str, *values: str | int) -> Any:
    """Return the first value of the first row, or None."""
    row = database.execute(statement.encode(), values).fetchone()
    return row[0] if row else None


def tables(database: Database) -> list[str]:
    """Return the names of all tables and views of any owner, without the restore mark."""
    return [name for (name,) in database.execute(_TABLES, [RESTORE_MARK]).fetchall()]


def marked(database: Database) -> str | None:
    """Return the SHA-256 of the backup that is being restored into the database."""
    if not asked(database, "SELECT to_regclass(%s) IS NOT NULL", RESTORE_MARK):
        return None
    return str(asked(database, "SELECT max(sha256) FROM core_restoring"))


def filled(database: Database, said: Manifest) -> bool:
    """Return True if the tables are those of this backup, left by an interrupted restore.

    They are if the last audit row matches. A first start may have created other tables after the
    mark.
    """
    if marked(database) != said.sha256 or "core_auditentry" not in tables(database):
        return False
    found = "SELECT hash FROM core_auditentry WHERE id = %s"
    return not said.audit_head or asked(database, found, said.audit_head) == said.audit_hash


def empty(database: Database) -> None:
    """Drop the tables of a first start.

    Raises :class:`Conflict` if they have been used since, or something else exists.
    """
    present = tables(database)
    used = any(asked(database, question) for table, question in _USED.items() if table in present)
    if not present:
        return
    if others := sorted(set(present) - _ours()):
        raise Conflict(
            f"This database is not only an installation's: it has {others[0]}, too. Restore into"
            " an empty one."
        )
    if used:
        raise Conflict(
            "This database is in use: somebody has signed in, made a token or stopped something."
            " Restore into an empty one."
        )
    functions = [name for (name,) in database.execute(_FUNCTIONS).fetchall()]
    with database.transaction():
        database.execute("SET LOCAL lock_timeout = '30s'")
        names = sql.SQL(", ").join(map(sql.Identifier, present))
        database.execute(sql.SQL("DROP TABLE {}").format(names))
        for name in functions:  # Quoted by PostgreSQL.
            database.execute(f"DROP FUNCTION {name}".encode())


def _ours() -> set[str]:
    return {*connection.introspection.django_table_names(), "django_migrations"}
