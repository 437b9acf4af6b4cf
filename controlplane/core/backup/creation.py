"""Creates a backup of a running installation: one snapshot of the database, and a manifest."""

from collections.abc import Callable
from pathlib import Path

import psycopg

from controlplane.core.errors import InvalidInput, Unavailable
from controlplane.core.health import RESTORE_MARK

from . import file, manifest, pg_programs
from .database import connected
from .manifest import Manifest

LOCK_WAIT = "30s"
# Sessions prove nothing about the data, and a restore must not sign anybody in again.
WITHOUT_ROWS = ("core_browsersession", "django_session")


def create(path: Path, url: str) -> Manifest:
    """Write a backup of the database at `url` to `path` and return its manifest.

    Raises :class:`Conflict`, :class:`InvalidInput`, and :class:`Unavailable` on failure.
    """
    if not path.parent.is_dir():
        raise InvalidInput({"FILE": [f"there is no folder {path.parent}."]})
    try:
        return file.write(path, lambda take: _dump(url, take))
    except OSError as error:
        raise Unavailable(f"The backup can't be written: {error.strerror or error}.") from error


def _dump(url: str, take: Callable[[bytes], None]) -> Manifest:
    with connected(url) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_export_snapshot()")
            (snapshot,) = cursor.fetchone() or ("",)
            try:
                said = manifest.read(cursor)
            except psycopg.errors.UndefinedTable as error:
                raise InvalidInput(
                    {"DATABASE_URL": ["this database is not an installation's."]}
                ) from error
        _run_dump(url, snapshot, said.postgres, take)
    return said


def _run_dump(url: str, snapshot: str, major: int, take: Callable[[bytes], None]) -> None:
    command = [
        str(pg_programs.find("pg_dump", at_least=major)),
        *("--format=custom", "--no-owner", "--no-privileges", f"--snapshot={snapshot}"),
        *("--no-password", f"--lock-wait-timeout={LOCK_WAIT}"),
        f"--exclude-table=*.{RESTORE_MARK}",
        *(f"--exclude-table-data=*.{table}" for table in WITHOUT_ROWS),
    ]
    pg_programs.read_from(command, pg_programs.environment(url), take)
