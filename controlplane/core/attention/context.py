"""Template context processor for the number of attention items in the navigation."""

from django.db import DatabaseError, InterfaceError
from django.http import HttpRequest
from django.utils import timezone
from django.utils.functional import SimpleLazyObject

from controlplane.core.attention import services

NOTHING = services.Overview(())
UNKNOWN = services.Overview((), ("all sources",))


def attention(request: HttpRequest) -> dict[str, object]:
    """Return the template variable `attention_count`, which is computed when a template uses it.

    It is empty if nobody is signed in, and unknown if the database is unreachable.
    """
    return {"attention_count": SimpleLazyObject(lambda: _count(request))}


def _count(request: HttpRequest) -> services.Overview:
    try:
        return services.count(timezone.now()) if request.user.is_authenticated else NOTHING
    except (DatabaseError, InterfaceError):
        return UNKNOWN
