"""Confirming one's identity before an action of high impact, kept in the person's session.

Signing in counts for `CONFIRM_MINUTES`. Tokens, Slack and the shell have no session and never
confirm.
"""

from datetime import datetime, timedelta

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse
from django.utils.http import urlencode
from rest_framework.request import Request

from controlplane.core.errors import ConfirmFirst

KEY = "confirmed_at"
# Time to fill in a form that was opened while the confirmation was valid.
GRACE = timedelta(minutes=10)


def is_fresh(request: HttpRequest | Request, now: datetime, *, grace: bool = False) -> bool:
    """Return whether the person confirmed their identity lately, or never has to (a token).

    `grace` allows for the time that filling in a form took.
    """
    plain = _plain(request)
    actor = getattr(plain, "actor", None)
    if actor is not None and actor.type != "user":
        return True
    limit = timedelta(minutes=settings.ENTRY.confirm_minutes)
    at = plain.session.get(KEY)
    if not isinstance(at, int | float):
        return False
    return now.timestamp() - at <= (limit + (GRACE if grace else timedelta())).total_seconds()


def require_fresh(request: HttpRequest | Request, now: datetime, *, next_url: str = "") -> None:
    """Raise :class:`ConfirmFirst` unless the person confirmed recently; writes have a grace period.

    `next_url` is the page after confirming: by default the page itself, or the one with the form.
    """
    plain = _plain(request)
    if not is_fresh(request, now, grace=plain.method not in {"GET", "HEAD"}):
        asked = urlencode({"next": next_url or _back(plain)})
        raise ConfirmFirst(f"{reverse('confirm')}?{asked}")


def record_confirmation(request: HttpRequest, at: float) -> None:
    """Record that the person confirmed their identity at this moment, in seconds since 1970."""
    request.session[KEY] = at


def _back(request: HttpRequest) -> str:
    """Return a page's own address, or a form's action, which answers GET as well."""
    return request.get_full_path() if request.method in {"GET", "HEAD"} else request.path


def _plain(request: HttpRequest | Request) -> HttpRequest:
    return request._request if isinstance(request, Request) else request
