"""Restores a backup into an empty database, in steps that survive a kill between them.

A mark identifies the backup being restored. PostgreSQL's program runs in one transaction; each
later step can be repeated. The last step removes the mark and sets the new epoch, without which
services would refuse the restored state.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from django.conf import settings
from django.core.management import call_command
from django.db import connection, connections, transaction

from controlplane.core import provision
from controlplane.core.actors import Actor
from controlplane.core.audit import services as audit
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict

from . import file, pg_programs
from .database import MIGRATING, Database, asked, connected, empty, filled, tables
from .manifest import Manifest, product

LOCK = 0x5317C6  # Of advisory locks, another than those of the audit trail and provision.
_GUARDED = """
SELECT count(*) = 1 FROM pg_trigger WHERE tgrelid = 'core_auditentry'::regclass
AND tgname = 'core_audit_append_only' AND tgenabled = 'O'
"""

Say = Callable[[str], None]


def restore(path: Path, url: str, *, actor: Actor, say: Say, over_fresh: bool = False) -> Manifest:
    """Restore the backup at `path` into the empty database at `url`, which is Django's own.

    `over_fresh` accepts a database set up by a first start and unused since; its tables are
    dropped. Raises :class:`InvalidInput` for an incomplete file, :class:`Conflict` for a database
    that is not empty or a backup of a later release, :class:`Unavailable`.
    """
    said = file.read_manifest(path)
    if unknown := said.unknown_here():
        raise Conflict(
            f"This backup was made by a later release ({said.product}; here is {product()}): it has"
            f" {', '.join(unknown[:3])}. Restore it with that release or a later one."
        )
    with connected(url, autocommit=True) as database:
        if not asked(database, "SELECT pg_try_advisory_lock(%s)", LOCK):
            raise Conflict("Another restore into this database is going on.")
        if not asked(database, "SELECT pg_try_advisory_lock(%s)", MIGRATING):
            raise Conflict(
                "This database is being migrated: an installation is starting in it. Wait until"
                " that says it is ready, then try again."
            )
        _check_address()
        if over_fresh and not filled(database, said):
            empty(database)
        if _begin(database, said):
            say("The tables are restored…")
            _fill(path, url, database, said)
        else:
            say("Going on with a restore that was interrupted…")
        connections.close_all()
        asked(database, "SELECT pg_advisory_unlock(%s)", MIGRATING)
        _finish(path, said, actor, say)
        database.execute("DROP TABLE core_restoring")
    return said


def _check_address() -> None:
    """Raise :class:`Conflict` if the application is configured for another database than this.

    The lock held by this restore is free in any other database.
    """
    addresses = settings.ENV.database
    if addresses.url == addresses.owner_url:
        return
    with connected(addresses.url, autocommit=True) as database:
        if asked(database, "SELECT pg_try_advisory_xact_lock(%s)", LOCK):
            raise Conflict(
                "DATABASE_URL and DATABASE_OWNER_URL name different databases. Point both to the"
                " empty one."
            )


def _begin(database: Database, said: Manifest) -> bool:
    """Leave the mark; whether the tables are still to be filled. Raises :class:`Conflict`."""
    if filled(database, said):
        return False
    if present := tables(database):
        raise Conflict(
            f"This database is not empty: it has {len(present)} tables, such as {present[0]}. Make"
            " an empty one (createdb) and point DATABASE_URL and DATABASE_OWNER_URL to it. If they"
            " are only what a first start has made, add --over-fresh."
        )
    with database.transaction():
        database.execute("CREATE TABLE IF NOT EXISTS core_restoring (sha256 text NOT NULL)")
        database.execute("TRUNCATE core_restoring")
        database.execute("INSERT INTO core_restoring VALUES (%s)", [said.sha256])
    return True


def _fill(path: Path, url: str, database: Database, said: Manifest) -> None:
    major = max(database.info.server_version // 10000, said.postgres)
    # Only the schema's content: extensions are the server's, and not every owner may create them.
    schema = asked(database, "SELECT current_schema()")
    command = [
        str(pg_programs.find("pg_restore", at_least=major)),
        *("--single-transaction", "--exit-on-error", "--no-owner", "--no-privileges"),
        *("--no-password", f"--schema={schema}", "--dbname", database.info.dbname),
    ]
    with file.opened(path) as (_, dump):
        pg_programs.write_to(command, pg_programs.environment(url), dump)


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
    """Raise :class:`Conflict` if the restored trail differs from the saved one, or is mutable."""
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
