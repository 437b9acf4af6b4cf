"""Template context: the installation's degradation."""

from django.db import DatabaseError, InterfaceError
from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from controlplane.core import degradation_levels as levels
from controlplane.core.degradation.services import Degraded

from . import services

NOTHING_SAID = Degraded(levels.NORMAL, (), None)
WITHOUT_DATABASE = Degraded(levels.EMERGENCY, (levels.POSTGRESQL,), None)


def degradation(request: HttpRequest) -> dict[str, object]:
    """Provide `degradation`, read when a template first uses it; works without the database."""
    return {"degradation": SimpleLazyObject(lambda: _seen(request))}


def _seen(request: HttpRequest) -> Degraded:
    try:
        return services.current() if request.user.is_authenticated else NOTHING_SAID
    except (DatabaseError, InterfaceError):
        return WITHOUT_DATABASE
