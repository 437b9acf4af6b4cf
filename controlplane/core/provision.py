"""Provisions an installation after migrations: the application's rights, and the apps' first data.

Runs as the owner of the tables, at every start; a second run changes nothing.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.db import connection, transaction
from django.utils.module_loading import autodiscover_modules
from psycopg import sql

from controlplane.core.actors import system
from controlplane.core.errors import Conflict

ACTOR = system("provision")
LOCK = 0x5317C5  # PostgreSQL refuses to grant on one table twice at once.

EVERYTHING = "SELECT, INSERT, UPDATE, DELETE"
RESTRICTED = {
    "core_auditentry": "SELECT, INSERT",
    "django_migrations": "SELECT",
}
"""Tables on which the application has restricted rights; it has all rights on others."""


FirstStep = Callable[[datetime], None]
_first_steps: list[FirstStep] = []


@transaction.atomic
def grant_rights(role: str) -> None:
    """Let `role` use all tables, but not own, truncate or alter them.

    Raises :class:`Conflict` if `role` is the owner itself.
    """
    lock()
    owner, schema = _one("SELECT current_user, current_schema()")
    if role == owner:
        raise Conflict(
            f"DATABASE_URL and DATABASE_OWNER_URL name the same login, {owner}. Leave"
            " DATABASE_OWNER_URL out, and the application steps down to a role without ownership."
        )
    named = {"role": sql.Identifier(role), "schema": sql.Identifier(schema)}
    _run("GRANT USAGE ON SCHEMA {schema} TO {role}", **named)
    for table in _tables(schema):
        own = {**named, "table": sql.Identifier(schema, table)}
        allowed = sql.SQL(RESTRICTED.get(table, EVERYTHING))
        _run("REVOKE ALL ON {table} FROM {role}", **own)
        _run("GRANT {allowed} ON {table} TO {role}", allowed=allowed, **own)
    _run("GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA {schema} TO {role}", **named)
    to_come = "ALTER DEFAULT PRIVILEGES IN SCHEMA {schema} GRANT "
    _run(to_come + EVERYTHING + " ON TABLES TO {role}", **named)
    _run(to_come + "USAGE, SELECT ON SEQUENCES TO {role}", **named)


@transaction.atomic
def make_role(role: str) -> None:
    """Create the application role for a single login that steps down to it with SET ROLE."""
    lock()
    name = sql.Identifier(role)
    if not _one("SELECT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = %s)", role)[0]:
        _run("CREATE ROLE {role} NOLOGIN", role=name)
    (version,) = _one("SELECT current_setting('server_version_num')::int")
    usable = "SET" if version >= 160000 else "MEMBER"
    if not _one("SELECT pg_has_role(current_user, %s, %s)", role, usable)[0]:
        _run("GRANT {role} TO CURRENT_USER", role=name)


def at_first(step: FirstStep) -> FirstStep:
    """Register an app's `step` to run at every start, from its module `provision`.

    The step must have an effect only on a new installation.
    """
    _first_steps.append(step)
    return step


def begin(now: datetime) -> None:
    """Run the registered first steps, each in its own transaction."""
    autodiscover_modules("provision")
    for step in _first_steps:
        with transaction.atomic():
            lock()
            step(now)


def _tables(schema: str) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p')"
            " AND relnamespace = %s::regnamespace AND pg_get_userbyid(relowner) = current_user"
            " ORDER BY relname",
            [schema],
        )
        return [name for (name,) in cursor.fetchall()]


def lock() -> None:
    _one("SELECT pg_advisory_xact_lock(%s)", LOCK)


def _one(statement: str, *values: str | int) -> tuple[Any, ...]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        row: tuple[Any, ...] = cursor.fetchone()
    return row


def _run(statement: str, **names: sql.Composable) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL(statement).format(**names))
