"""Creation of a backup: a dump of the database as of one moment, and its manifest."""

from collections.abc import Callable
from pathlib import Path

import psycopg

from controlplane.core.errors import InvalidInput, Unavailable
from controlplane.core.health import RESTORE_MARK
from controlplane.core.registered_sql import TABLES_WITHOUT_ROWS

from . import file, manifest, pg_programs
from .database import connect
from .manifest import Manifest

LOCK_WAIT = "30s"


def create(path: Path, url: str) -> Manifest:
    """Write a backup of the database at `url` to `path` and return its manifest.

    Raises :class:`Conflict` if the file exists, :class:`InvalidInput` for a wrong path or database,
    and :class:`Unavailable` if reading or writing fails.
    """
    if not path.parent.is_dir():
        raise InvalidInput({"FILE": [f"the folder {path.parent} doesn't exist."]})
    try:
        return file.write(path, lambda take: _dump(url, take))
    except OSError as error:
        raise Unavailable(f"The backup can't be written: {error.strerror or error}.") from error


def _dump(url: str, take: Callable[[bytes], None]) -> Manifest:
    with connect(url) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_export_snapshot()")
            (snapshot,) = cursor.fetchone() or ("",)
            try:
                description = manifest.describe_database(cursor)
            except psycopg.errors.UndefinedTable as error:
                raise InvalidInput(
                    {"DATABASE_URL": ["this database has no Switchgear installation."]}
                ) from error
        command = [
            str(pg_programs.find("pg_dump", at_least=description.postgres)),
            *("--format=custom", "--no-owner", "--no-privileges", f"--snapshot={snapshot}"),
            *("--no-password", f"--lock-wait-timeout={LOCK_WAIT}"),
            f"--exclude-table=*.{RESTORE_MARK}",
            *(f"--exclude-table-data=*.{table}" for table in sorted(TABLES_WITHOUT_ROWS)),
        ]
        pg_programs.read_from(command, pg_programs.build_environment(url), take)
    return description
