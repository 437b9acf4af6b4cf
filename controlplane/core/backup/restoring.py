"""Restoring a backup into an empty database, in steps that a kill between them can't spoil.

A mark of its own says which backup is being restored. What PostgreSQL's program does is one
transaction; every step after it may be done twice. The mark goes with the last of them, the new
epoch, without which services would refuse the restored state.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import psycopg
from django.conf import settings
from django.core.management import call_command
from django.db import connection, connections, transaction

from controlplane.core import provision
from controlplane.core.actors import Actor
from controlplane.core.audit import services as audit
from controlplane.core.backup import file, programs
from controlplane.core.backup.manifest import Manifest, product
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict

CONNECT_SECONDS = 10
MARK = "core_restoring"
LOCK = 0x5317C6  # Of advisory locks, another than those of the audit trail and provision.
_TABLES = """
SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace
AND relkind IN ('r', 'p', 'v', 'm') AND relname <> %s ORDER BY relname
"""
_UNUSED = """
SELECT NOT EXISTS (SELECT FROM core_user WHERE last_login IS NOT NULL)
   AND NOT EXISTS (SELECT FROM core_token) AND NOT EXISTS (SELECT FROM switches_episode)
"""
_GUARDED = """
SELECT count(*) = 1 FROM pg_trigger WHERE tgrelid = 'core_auditentry'::regclass
AND tgname = 'core_audit_append_only' AND tgenabled = 'O'
"""

Say = Callable[[str], None]
Database: TypeAlias = "psycopg.Connection[tuple[Any, ...]]"


def restore(path: Path, url: str, *, actor: Actor, say: Say, over_fresh: bool = False) -> Manifest:
    """Restore the backup at `path` into the empty database at `url`, which is Django's own.

    `over_fresh` lets it be one that a first start has set up and nobody has used; what that start
    made is dropped. Raises :class:`InvalidInput` for a file that is no whole backup,
    :class:`Conflict` for a database that is not empty or a backup of a later release,
    :class:`Unavailable`.
    """
    said = file.read_manifest(path)
    if unknown := said.unknown_here():
        raise Conflict(
            f"This backup was made by a later release ({said.product}; here is {product()}): it has"
            f" {', '.join(unknown[:3])}. Restore it with that release or a later one."
        )
    with psycopg.connect(url, connect_timeout=CONNECT_SECONDS, autocommit=True) as database:
        if not _asked(database, "SELECT pg_try_advisory_lock(%s)", LOCK):
            raise Conflict("Another restore into this database is going on.")
        if over_fresh:
            _empty(database)
        if _begin(database, said):
            say("The tables are restored…")
            _fill(path, url, max(database.info.server_version // 10000, said.postgres))
        else:
            say("Going on with a restore that was interrupted…")
        connections.close_all()
        _finish(path, said, actor, say)
        database.execute("DROP TABLE core_restoring")
    return said


def _begin(database: Database, said: Manifest) -> bool:
    """Leave the mark; whether the tables are still to be filled. Raises :class:`Conflict`."""
    tables = [name for (name,) in database.execute(_TABLES, [MARK]).fetchall()]
    if tables and (_marked(database) != said.sha256):
        raise Conflict(
            f"This database is not empty: it has {len(tables)} tables, such as {tables[0]}. Make an"
            " empty one (createdb) and point DATABASE_URL and DATABASE_OWNER_URL to it."
        )
    if not tables:
        with database.transaction():
            database.execute("CREATE TABLE IF NOT EXISTS core_restoring (sha256 text NOT NULL)")
            database.execute("TRUNCATE core_restoring")
            database.execute("INSERT INTO core_restoring VALUES (%s)", [said.sha256])
    return not tables


def _empty(database: Database) -> None:
    """Drop what a first start has made. Raises :class:`Conflict` if anybody has used it since."""
    if _marked(database) or not _asked(database, "SELECT to_regclass('core_user') IS NOT NULL"):
        return
    if not _asked(database, _UNUSED):
        raise Conflict(
            "This database is in use: somebody has signed in, made a token or stopped something."
            " Restore into an empty one."
        )
    with database.transaction():
        database.execute("SET LOCAL lock_timeout = '30s'")
        database.execute("DROP SCHEMA public CASCADE")
        database.execute("CREATE SCHEMA public")


def _marked(database: Database) -> str | None:
    if not _asked(database, "SELECT to_regclass(%s) IS NOT NULL", MARK):
        return None
    return str(_asked(database, "SELECT max(sha256) FROM core_restoring"))


def _asked(database: Database, statement: str, *values: str | int) -> Any:
    row = database.execute(statement.encode(), values).fetchone()
    return row[0] if row else None


def _fill(path: Path, url: str, major: int) -> None:
    command = [
        str(programs.find("pg_restore", at_least=major)),
        *("--single-transaction", "--exit-on-error", "--no-owner", "--no-privileges"),
        *("--no-password", "--dbname", ""),
    ]
    variables = programs.environment(url)
    command[-1] = variables["PGDATABASE"]
    with file.opened(path) as (_, dump):
        programs.write_to(command, variables, dump)


def _finish(path: Path, said: Manifest, actor: Actor, say: Say) -> None:
    call_command("migrate", interactive=False, verbosity=0)
    if settings.ENV.database.assume_role:
        provision.make_role(settings.DATABASE_RUNTIME_ROLE)
    provision.grant_rights(settings.DATABASE_RUNTIME_ROLE)
    _check(said)
    say(f"The audit trail is whole: {said.audit_rows} rows as they were, and append-only.")
    as_of = f"{path.name} of {said.taken_at} (epoch {said.epoch}, version {said.version})"
    with transaction.atomic():
        audit.record(
            actor=actor,
            action="backup.restored",
            target="backup",
            reason=f"Restored {as_of}",
            after={"sha256": said.sha256, "audit_head": said.audit_head, "product": said.product},
            now=db_now(),
        )
    call_command("epoch", "begin", reason=f"Backup {as_of} restored.")


def _check(said: Manifest) -> None:
    """Raises :class:`Conflict` if the trail is not what was saved, or could be rewritten."""
    verdict = audit.verify(said.anchor)
    if not verdict.intact or verdict.rows < said.audit_rows:
        where = f"row {verdict.bad_id}: {verdict.problem}" if verdict.bad_id else "rows are missing"
        raise Conflict(f"The restored audit trail is not whole: {where}.")
    if not (_yes(_GUARDED) and _denied(settings.DATABASE_RUNTIME_ROLE, ("UPDATE", "DELETE"))):
        raise Conflict("The restored audit trail is not append-only; this database can't be used.")


def _denied(role: str, rights: Sequence[str]) -> bool:
    asked = "SELECT has_table_privilege(%s, 'core_auditentry', %s)"
    return not any(_yes(asked, role, right) for right in rights)


def _yes(statement: str, *values: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        row = cursor.fetchone()
    return bool(row and row[0])
