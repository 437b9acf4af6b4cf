"""Template context processor with the status summary of all switches."""

from django.db import DatabaseError, InterfaceError
from django.http import HttpRequest
from django.utils import timezone
from django.utils.functional import SimpleLazyObject

from .status_summary import StatusSummary, read_summary


def banner(request: HttpRequest) -> dict[str, object]:
    """Return the template variable `standing`: a lazy :class:`StatusSummary`.

    Its field `known` is False after a database error.
    """
    return {"standing": SimpleLazyObject(lambda: _read_status(request))}


def _read_status(request: HttpRequest) -> StatusSummary:
    now = timezone.now()
    try:
        user = request.user
        if not user.is_authenticated:
            return StatusSummary(now)
        return read_summary(now, with_approvals=user.may_approve)
    except (DatabaseError, InterfaceError):
        return StatusSummary(now, known=False)
