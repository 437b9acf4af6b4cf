"""Restore of a backup into an empty database, in steps that can be resumed after a kill.

A mark in the database identifies the backup being restored. `pg_restore` runs in one transaction
and each later step can be repeated. The last step removes the mark and begins a new epoch, without
which services would refuse the restored state.
"""

from collections.abc import Callable
from pathlib import Path

from django.conf import settings
from django.core.management import call_command
from django.db import connections, transaction

from controlplane.core import provision
from controlplane.core.actors import Actor
from controlplane.core.audit import services as audit
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict
from controlplane.core.sql import fetch_all

from . import file, pg_programs
from .database import (
    MIGRATING,
    Database,
    connect,
    drop_fresh_tables,
    fetch_value,
    is_restored,
    list_tables,
)
from .manifest import Manifest, product_version

LOCK = 0x5317C6  # An arbitrary number, unique among our advisory locks.
_APPEND_ONLY = """
SELECT count(*) = 1 AND NOT has_table_privilege(%s, 'core_auditentry', 'UPDATE, DELETE')
FROM pg_trigger WHERE tgrelid = 'core_auditentry'::regclass
AND tgname = 'core_audit_append_only' AND tgenabled = 'O'
"""

Say = Callable[[str], None]


def restore(path: Path, url: str, *, actor: Actor, say: Say, over_fresh: bool = False) -> Manifest:
    """Restore the backup at `path` into the empty database at `url`.

    Django must be configured for the same database. `say` receives progress messages. With
    `over_fresh`, the tables of an installation that was started but never used are dropped
    first. Raises :class:`InvalidInput` for a damaged file, :class:`Conflict` for a database in
    use or a backup of a later release, and :class:`Unavailable` if the database fails.
    """
    manifest = file.read_manifest(path)
    if missing := manifest.missing_migrations():
        raise Conflict(
            f"This backup was made by a later release ({manifest.product}; here is"
            f" {product_version()}): it has {', '.join(missing[:3])}. Restore it with that"
            " release or a later one."
        )
    with connect(url, autocommit=True) as database:
        if not fetch_value(database, "SELECT pg_try_advisory_lock(%s)", LOCK):
            raise Conflict("Another restore into this database is running.")
        if not fetch_value(database, "SELECT pg_try_advisory_lock(%s)", MIGRATING):
            raise Conflict(
                "This database is being migrated by an installation that is starting. Wait until it"
                " is ready, then try again."
            )
        _check_address()
        if over_fresh and not is_restored(database, manifest):
            drop_fresh_tables(database)
        if _set_mark(database, manifest):
            say("Restoring the tables…")
            _restore_tables(path, url, database, manifest)
        else:
            say("Continuing an interrupted restore…")
        connections.close_all()
        fetch_value(database, "SELECT pg_advisory_unlock(%s)", MIGRATING)
        _finish(path, manifest, actor, say)
        database.execute("DROP TABLE core_restoring")
    return manifest


def _check_address() -> None:
    """Raise :class:`Conflict` if `DATABASE_URL` does not name the database to restore into."""
    addresses = settings.ENV.database
    if addresses.url == addresses.owner_url:
        return
    with connect(addresses.url, autocommit=True) as database:
        if fetch_value(database, "SELECT pg_try_advisory_xact_lock(%s)", LOCK):
            raise Conflict(
                "DATABASE_URL and DATABASE_OWNER_URL name different databases. Point both to the"
                " empty one."
            )


def _set_mark(database: Database, manifest: Manifest) -> bool:
    """Mark the database as being restored; return False if an earlier run has filled its tables."""
    if is_restored(database, manifest):
        return False
    if present := list_tables(database):
        raise Conflict(
            f"This database is not empty: it has {len(present)} tables, such as {present[0]}."
            " Create an empty database (createdb) and point DATABASE_URL and DATABASE_OWNER_URL to"
            " it. If the tables are only those of a first start, add --over-fresh."
        )
    with database.transaction():
        database.execute("CREATE TABLE IF NOT EXISTS core_restoring (sha256 text NOT NULL)")
        database.execute("TRUNCATE core_restoring")
        database.execute("INSERT INTO core_restoring VALUES (%s)", [manifest.sha256])
    return True


def _restore_tables(path: Path, url: str, database: Database, manifest: Manifest) -> None:
    major = max(database.info.server_version // 10000, manifest.postgres)
    # Only the schema's content: extensions are the server's, and not every owner may create them.
    schema = fetch_value(database, "SELECT current_schema()")
    command = [
        str(pg_programs.find("pg_restore", at_least=major)),
        *("--single-transaction", "--exit-on-error", "--no-owner", "--no-privileges"),
        *("--no-password", f"--schema={schema}", "--dbname", database.info.dbname),
    ]
    with file.open_backup(path) as (_, dump):
        pg_programs.write_to(command, pg_programs.build_environment(url), dump)


def _finish(path: Path, manifest: Manifest, actor: Actor, say: Say) -> None:
    call_command("migrate", interactive=False, verbosity=0)
    if settings.ENV.database.assume_role:
        provision.make_role(settings.DATABASE_RUNTIME_ROLE)
    provision.grant_rights(settings.DATABASE_RUNTIME_ROLE)
    _check_audit_trail(manifest)
    say(f"The audit trail is complete: {manifest.audit_rows} rows, unchanged and append-only.")
    as_of = (
        f"{path.name} of {manifest.taken_at} (epoch {manifest.epoch}, version {manifest.version})"
    )
    with transaction.atomic():
        audit.record(
            actor=actor,
            action="backup.restored",
            target="backup",
            reason=f"Restored {as_of}",
            after={
                "sha256": manifest.sha256,
                "audit_head": manifest.audit_head,
                "product": manifest.product,
            },
            now=db_now(),
        )
    call_command("epoch", "begin", reason=f"Backup {as_of} restored.")


def _check_audit_trail(manifest: Manifest) -> None:
    """Raise :class:`Conflict` unless the restored audit trail is whole and append-only."""
    verdict = audit.verify(manifest.anchor)
    if not verdict.intact or verdict.rows < manifest.audit_rows:
        where = f"row {verdict.bad_id}: {verdict.problem}" if verdict.bad_id else "rows are missing"
        raise Conflict(f"The restored audit trail is incomplete: {where}.")
    ((is_append_only,),) = fetch_all(_APPEND_ONLY, [settings.DATABASE_RUNTIME_ROLE])
    if not is_append_only:
        raise Conflict("The restored audit trail is not append-only; this database can't be used.")
