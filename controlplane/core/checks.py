"""Django system checks for the audit table's owner, retention settings and gate kinds."""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.db import DatabaseError, InterfaceError, connection

from controlplane.core.gates.kinds import GATE_KINDS
from controlplane.core.gates.options import OPTION_LISTS
from controlplane.core.retention.rules import find_period_errors

OWNS_THE_TRAIL = Warning(
    "The application's database role owns the audit table, so it could switch its protection off.",
    hint="Set DATABASE_OWNER_URL to another login and run migrate and provision.",
    id="core.W001",
)


@register(Tags.security, deploy=True)
def check_audit_table_owner(**_: Any) -> list[CheckMessage]:
    """Warn if the application's database role owns the audit table; pass without a database."""
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
def check_retention_periods(**_: Any) -> list[CheckMessage]:
    """Report invalid entries of the setting KEPT_DAYS; `migrate` fails on them."""
    return [
        Error(f"KEPT_DAYS: {problem}", id="core.E001")
        for problem in find_period_errors(settings.KEPT_DAYS)
    ]


@register()
def check_gate_options(**_: Any) -> list[CheckMessage]:
    """Report fields of gate kinds whose list of options no app registers; the editor needs it."""
    return [
        Error(
            f"{kind.name}.{field.name}: there is no list of options {field.options!r}",
            hint="Register an OptionList of this name in a module gate_options.",
            id="core.E002",
        )
        for kind in GATE_KINDS.values()
        for field in kind.fields
        if field.options and field.options not in OPTION_LISTS
    ]
