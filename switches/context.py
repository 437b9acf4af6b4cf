"""What every page says of the switches, whatever page it is."""

from django.db import DatabaseError, InterfaceError
from django.http import HttpRequest
from django.utils import timezone
from django.utils.functional import SimpleLazyObject

from switches.standing import Standing, look


def banner(request: HttpRequest) -> dict[str, object]:
    """`standing`, read when a template first asks. A database that is away breaks no page."""
    return {"standing": SimpleLazyObject(lambda: _standing(request))}


def _standing(request: HttpRequest) -> Standing:
    now = timezone.now()
    try:
        user = request.user
        if not user.is_authenticated:
            return Standing(now)
        return look(now, with_approvals=user.may_approve)
    except (DatabaseError, InterfaceError):
        return Standing(now, known=False)
