"""Template context processor for the installation's degradation."""

from django.db import DatabaseError, InterfaceError
from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from controlplane.core import degradation_levels as levels
from controlplane.core.degradation.services import Degraded

from . import services

ANONYMOUS = Degraded(levels.NORMAL, (), None)
WITHOUT_DATABASE = Degraded(levels.EMERGENCY, (levels.POSTGRESQL,), None)


def degradation(request: HttpRequest) -> dict[str, object]:
    """Return the template variable `degradation`, which is read when a template uses it.

    It works without the database, too.
    """
    return {"degradation": SimpleLazyObject(lambda: _load(request))}


def _load(request: HttpRequest) -> Degraded:
    try:
        return services.load_degradation() if request.user.is_authenticated else ANONYMOUS
    except (DatabaseError, InterfaceError):
        return WITHOUT_DATABASE
