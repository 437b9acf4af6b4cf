"""Showing again who one is, before what can't be taken back: kept in the person's session.

Signing in counts for `CONFIRM_MINUTES`, by single sign-on since the provider asked. Tokens,
Slack and the shell have no session to ask in and are never asked.
"""

from datetime import datetime, timedelta

from allauth.account.internal.flows.login import AUTHENTICATION_METHODS_SESSION_KEY
from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse
from django.utils.http import urlencode
from rest_framework.request import Request

from controlplane.core.errors import ConfirmFirst

__all__ = ["ConfirmFirst", "confirmed", "is_fresh", "require_fresh", "signed_in"]

KEY = "confirmed_at"
# Whoever was fresh when the form opened may take this long to fill it in.
GRACE = timedelta(minutes=10)


def is_fresh(request: HttpRequest | Request, now: datetime, *, grace: bool = False) -> bool:
    """Whether this person has lately shown who they are, or is never asked (a token).

    `grace` is for what a form sends: it allows for the time that filling it in took.
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
    """Raise :class:`ConfirmFirst` unless the person is fresh; what is sent has the grace.

    `next_url` is where a page leads after confirming: by default the page itself, or the page that
    sent a form.
    """
    plain = _plain(request)
    if not is_fresh(request, now, grace=plain.method not in {"GET", "HEAD"}):
        asked = urlencode({"next": next_url or _back(plain)})
        raise ConfirmFirst(f"{reverse('confirm')}?{asked}")


def confirmed(request: HttpRequest, now: datetime) -> None:
    """Note that the person has just shown who they are."""
    request.session[KEY] = now.timestamp()


def signed_in(request: HttpRequest, now: datetime) -> None:
    """Note that the person has just signed in.

    Single sign-on alone may ask nobody anything: it counts as of when the provider last did, if
    that says so.
    """
    steps = request.session.get(AUTHENTICATION_METHODS_SESSION_KEY) or [{}]
    at = steps[-1].get("auth_time")
    request.session[KEY] = min(at, now.timestamp()) if isinstance(at, int) else now.timestamp()


def _back(request: HttpRequest) -> str:
    """A page by its own address; a form by its action, which answers GET as well."""
    return request.get_full_path() if request.method in {"GET", "HEAD"} else request.path


def _plain(request: HttpRequest | Request) -> HttpRequest:
    return request._request if isinstance(request, Request) else request
