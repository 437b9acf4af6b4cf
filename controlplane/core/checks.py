"""Django system checks for the database's owner, retention settings and migrations."""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.db import DatabaseError, InterfaceError, connection

from controlplane.core.backup import manifest
from controlplane.core.retention.rules import period_errors, ruled_models

from . import migration_safety

OWNS_THE_TRAIL = Warning(
    "The application's database role owns the audit table, so it could switch its protection off.",
    hint="Set DATABASE_OWNER_URL to another login and run migrate and provision.",
    id="core.W001",
)


@register(Tags.security, deploy=True)
def audit_table_belongs_to_another(**_: Any) -> list[CheckMessage]:
    """Report an audit table owned by the application's role; silent without a database."""
    try:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_has_role(session_user, relowner, 'MEMBER') FROM pg_class"
                " WHERE oid = to_regclass('core_auditentry')"
            )
            row = cursor.fetchone()
    except (DatabaseError, InterfaceError):
        return []
    return [OWNS_THE_TRAIL] if row and row[0] else []


@register()
def kept_days_are_within_bounds(**_: Any) -> list[CheckMessage]:
    """Report wrong KEPT_DAYS; this stops `migrate`, and so every start."""
    return [
        Error(f"KEPT_DAYS: {said}", id="core.E001") for said in period_errors(settings.KEPT_DAYS)
    ]


@register(deploy=True)
def migrations_let_the_release_before_go_on(**_: Any) -> list[CheckMessage]:
    """System check: migrations must be compatible with the previous release.

    During a rolling upgrade the old release runs on the new schema.
    """
    growing = {*ruled_models(), "core.AuditEntry"}
    found = migration_safety.problems(manifest.product(), growing)
    return [Error(said, id="core.E002") for said in found]
