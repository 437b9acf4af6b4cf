"""Checks of `manage.py check --deploy` that only the database can answer."""

from typing import Any

from django.core.checks import CheckMessage, Tags, Warning, register
from django.db import DatabaseError, InterfaceError, connection

OWNS_THE_TRAIL = Warning(
    "The application's database role owns the audit table, so it could switch its protection off.",
    hint="Set DATABASE_OWNER_URL to another login and run migrate and provision.",
    id="core.W001",
)


@register(Tags.security, deploy=True)
def audit_table_belongs_to_another(**_: Any) -> list[CheckMessage]:
    """Silent where there is no database to ask, as when an image is built."""
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
