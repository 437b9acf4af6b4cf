"""Set-up of the database at every start, as the owner of the tables: rights and initial data."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.db import connection, transaction
from django.utils.module_loading import autodiscover_modules
from psycopg import sql

from controlplane.core.actors import system_actor
from controlplane.core.errors import Conflict
from controlplane.core.sql import fetch_all

ACTOR = system_actor("provision")
LOCK = 0x5317C5  # An advisory lock, because concurrent GRANTs on one table fail.

EVERYTHING = "SELECT, INSERT, UPDATE, DELETE"
RESTRICTED = {
    "core_auditentry": "SELECT, INSERT",
    "django_migrations": "SELECT",
}
"""Rights of the application on the tables where it doesn't have all rights."""

_OWN_TABLES = """
    SELECT relname FROM pg_class WHERE relkind IN ('r', 'p')
       AND relnamespace = %s::regnamespace AND pg_get_userbyid(relowner) = current_user
     ORDER BY relname
"""
_first_steps: list[Callable[[datetime], None]] = []


@transaction.atomic
def grant_rights(role: str) -> None:
    """Let `role` read and write all tables without owning them; raise Conflict if it owns one."""
    take_lock()
    owner, schema = _fetch_row("SELECT current_user, current_schema()")
    if role == owner:
        raise Conflict(
            f"DATABASE_URL and DATABASE_OWNER_URL name the same login, {owner}. Remove"
            " DATABASE_OWNER_URL; the application then uses a role without ownership."
        )
    identifiers = {"role": sql.Identifier(role), "schema": sql.Identifier(schema)}
    _run("GRANT USAGE ON SCHEMA {schema} TO {role}", **identifiers)
    for (table,) in fetch_all(_OWN_TABLES, [schema]):
        table_identifiers = {**identifiers, "table": sql.Identifier(schema, table)}
        allowed = sql.SQL(RESTRICTED.get(table, EVERYTHING))
        _run("REVOKE ALL ON {table} FROM {role}", **table_identifiers)
        _run("GRANT {allowed} ON {table} TO {role}", allowed=allowed, **table_identifiers)
    _run("GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA {schema} TO {role}", **identifiers)
    default_rights = "ALTER DEFAULT PRIVILEGES IN SCHEMA {schema} GRANT "
    _run(default_rights + EVERYTHING + " ON TABLES TO {role}", **identifiers)
    _run(default_rights + "USAGE, SELECT ON SEQUENCES TO {role}", **identifiers)


@transaction.atomic
def make_role(role: str) -> None:
    """Create the database role `role`, which can't log in; the current login may assume it."""
    take_lock()
    name = sql.Identifier(role)
    if not _fetch_row("SELECT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = %s)", role)[0]:
        _run("CREATE ROLE {role} NOLOGIN", role=name)
    (version,) = _fetch_row("SELECT current_setting('server_version_num')::int")
    usable = "SET" if version >= 160000 else "MEMBER"
    if not _fetch_row("SELECT pg_has_role(current_user, %s, %s)", role, usable)[0]:
        _run("GRANT {role} TO CURRENT_USER", role=name)


def first_step(step: Callable[[datetime], None]) -> Callable[[datetime], None]:
    """Decorator for functions that add missing initial data, in the apps' modules `provision`."""
    _first_steps.append(step)
    return step


def run_first_steps(now: datetime) -> None:
    """Add missing initial data by the functions of :func:`first_step`, each in a transaction."""
    autodiscover_modules("provision")
    for step in _first_steps:
        with transaction.atomic():
            take_lock()
            step(now)


def take_lock() -> None:
    _fetch_row("SELECT pg_advisory_xact_lock(%s)", LOCK)


def _fetch_row(statement: str, *values: str | int) -> tuple[Any, ...]:
    return fetch_all(statement, values)[0]


def _run(statement: str, **names: sql.Composable) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL(statement).format(**names))
