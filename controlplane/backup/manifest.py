"""A backup's manifest: its contents, its time, and the digest of the dump."""

import json
import tomllib
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db.migrations.loader import MigrationLoader
from django.utils.crypto import salted_hmac
from psycopg import Cursor

from controlplane.core.errors import InvalidInput
from controlplane.core.registered_sql import PUBLISHED_HEAD

FORMAT = 1
MAX_BYTES = 1024 * 1024
_AUDIT = """
SELECT count(*), coalesce(max(id), 0),
       coalesce((SELECT hash FROM core_auditentry ORDER BY id DESC LIMIT 1), '')
FROM core_auditentry
"""


@dataclass(frozen=True)
class Manifest:
    """The description of a backup: versions, audit head and digests.

    `taken_at` is RFC 3339 by the database's clock. `key` identifies SECRET_KEY without revealing
    it. `sha256` and `size` (bytes) describe the dump.
    """

    format: int
    product: str
    installation: str
    taken_at: str
    postgres: int
    epoch: str
    version: int
    audit_rows: int
    audit_head: int
    audit_hash: str
    migrations: tuple[str, ...]
    key: str
    size: int = 0
    sha256: str = ""

    def dumps(self) -> bytes:
        return json.dumps(asdict(self), indent=1).encode() + b"\n"

    @property
    def anchor(self) -> dict[int, str]:
        return {self.audit_head: self.audit_hash} if self.audit_head else {}

    @property
    def matches_secret_key(self) -> bool:
        """Return True if the backup was made with SECRET_KEY or one of its fallbacks."""
        return self.key in map(_identify_key, (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS))

    def missing_migrations(self) -> list[str]:
        """Return the migrations in the backup that this release lacks."""
        known = {f"{app}.{name}" for app, name in MigrationLoader(None).disk_migrations}
        return [name for name in self.migrations if name not in known]


def loads(content: bytes) -> Manifest:
    """Parse a manifest; raise :class:`InvalidInput` if it is malformed or of another format."""
    try:
        document: dict[str, Any] = json.loads(content)
        if document.get("format") != FORMAT:
            raise InvalidInput(
                {"FILE": [f"backup format {document.get('format')} is not supported."]}
            )
        manifest = Manifest(**{**document, "migrations": tuple(document["migrations"])})
        datetime.fromisoformat(manifest.taken_at)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InvalidInput({"FILE": ["its manifest can't be read."]}) from error
    return manifest


def describe_database(cursor: "Cursor[Any]") -> Manifest:
    """Return a manifest of the database as the cursor's transaction sees it.

    Its digest and size, which describe the dump, are still empty.
    """
    taken_at, postgres = _fetch_row(
        cursor, "SELECT now(), current_setting('server_version_num')::int / 10000"
    )
    epoch, number = _fetch_row(
        cursor,
        f"SELECT epoch::text, version FROM ({PUBLISHED_HEAD.get()}) head",  # noqa: S608
    )
    rows, head, digest = _fetch_row(cursor, _AUDIT)
    cursor.execute("SELECT app || '.' || name FROM django_migrations ORDER BY 1")
    return Manifest(
        format=FORMAT,
        product=product_version(),
        installation=settings.ENV.name,
        taken_at=taken_at.isoformat(),
        postgres=postgres,
        epoch=epoch,
        version=number,
        audit_rows=rows,
        audit_head=head,
        audit_hash=digest,
        migrations=tuple(name for (name,) in cursor.fetchall()),
        key=_identify_key(settings.SECRET_KEY),
    )


def product_version() -> str:
    """Return the version of this release."""
    project = tomllib.loads((settings.BASE_DIR / "pyproject.toml").read_text())
    return str(project["project"]["version"])


def _identify_key(secret: str | bytes) -> str:
    return str(
        salted_hmac("backup", "which key", secret=secret, algorithm="sha256").hexdigest()[:32]
    )


def _fetch_row(cursor: "Cursor[Any]", statement: str) -> tuple[Any, ...]:
    cursor.execute(statement)
    row = cursor.fetchone()
    if row is None:
        raise InvalidInput({"DATABASE_URL": ["this database has no Switchgear installation."]})
    return tuple(row)
