"""Who has to wait: after too many failures, by name and address together, in the database; and
strangers who come in crowds.

Redis and every cache may be down, and guessing stays as slow.
"""

import math
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import cast

from axes.handlers.proxy import AxesProxyHandler
from axes.helpers import get_cool_off
from axes.models import AccessAttempt
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.cache import add_never_cache_headers

from controlplane.core.errors import TooManyRequests
from controlplane.core.http.requests import client_ip
from controlplane.core.people.models import BrowserSession, User
from controlplane.core.people.session_store import SessionStore

HASHED_AT_ONCE = 2
HASHING_WAITS_SECONDS = 3.0
STRANGERS_AT_MOST = 60
"""Sessions of one address in which nobody has come in yet, within :data:`STRANGERS_WITHIN`."""
STRANGERS_WITHIN = timedelta(minutes=10)
_hashing = threading.BoundedSemaphore(HASHED_AT_ONCE)


@contextmanager
def hashing() -> Iterator[None]:
    """What compares a password takes a core for a third of a second: few at once in a process, or a
    crowd at the door would slow down whoever is inside. Raises :class:`TooManyRequests`."""
    if not _hashing.acquire(timeout=HASHING_WAITS_SECONDS):
        raise TooManyRequests(
            "Many people are signing in just now. Try again in a moment.", retry_after=3
        )
    try:
        yield
    finally:
        _hashing.release()


def begin_as_stranger(request: HttpRequest, now: datetime) -> None:
    """Begin a session for somebody who has yet to come in: it keeps the question they were asked.

    Raises :class:`TooManyRequests` for an address that has begun very many: each is a row.
    """
    if request.session.session_key is not None:
        return
    ip = client_ip(request)
    theirs = BrowserSession.objects.filter(user=None, ip=ip, started_at__gt=now - STRANGERS_WITHIN)
    if theirs.count() >= STRANGERS_AT_MOST:
        minutes = int(STRANGERS_WITHIN.total_seconds() // 60)
        raise TooManyRequests(
            f"Too many have begun to sign in from your address. Try again in {minutes} minutes.",
            retry_after=60,
        )
    agent = request.headers.get("User-Agent", "")
    cast(SessionStore, request.session).begin(ip=ip, user_agent=agent, method="", now=now)


def is_allowed(request: HttpRequest, username: str) -> bool:
    return bool(AxesProxyHandler.is_allowed(request, {"username": username}))


def failed(request: HttpRequest, username: str) -> None:
    """Count what is no password: a wrong code. The one too many answers with :func:`locked_out`."""
    AxesProxyHandler.user_login_failed(
        sender=User, credentials={"username": username}, request=request
    )


def forget(request: HttpRequest, username: str) -> None:
    """Nothing counts any more of what failed for this name at this address."""
    AxesProxyHandler.reset_attempts(ip_address=client_ip(request), username=username)


def locked_out(
    request: HttpRequest,
    original_response: object = None,
    credentials: Mapping[str, str] | None = None,
) -> HttpResponse:
    """What django-axes answers with after too many failures: until when, in words."""
    name = (credentials or {}).get("username") or typed_name(request)
    last = (
        AccessAttempt.objects.filter(username=name, ip_address=client_ip(request))
        .order_by("-attempt_time")
        .first()
    )
    now = timezone.now()
    cool_off: timedelta = get_cool_off(request) or timedelta(minutes=15)
    until = (last.attempt_time if last else now) + cool_off
    seconds = max(1, math.ceil((until - now).total_seconds()))
    response = render(
        request,
        "registration/locked_out.html",
        {
            "until": until,
            "minutes": math.ceil(seconds / 60),
            "limit": settings.AXES_FAILURE_LIMIT,
            "next": request.POST.get("next", ""),
        },
        status=429,
    )
    response["Retry-After"] = str(seconds)
    add_never_cache_headers(response)
    return response


def typed_name(request: HttpRequest) -> str:
    """PostgreSQL takes no null characters, and no name is longer than the column."""
    return request.POST.get("username", "").replace("\x00", "")[:150]
