"""Django system check for migrations during a rolling upgrade."""

from typing import Any

from django.core.checks import CheckMessage, Error, register

from controlplane.backup import manifest
from controlplane.core.retention.rules import ruled_models

from . import migration_safety


@register(deploy=True)
def check_migration_safety(**_: Any) -> list[CheckMessage]:
    """Report migrations that would break the previous release during a rolling upgrade."""
    growing = {*ruled_models(), "core.AuditEntry"}
    problems = migration_safety.find_problems(manifest.product_version(), growing)
    return [Error(problem, id="core.E002") for problem in problems]
