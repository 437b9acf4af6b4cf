"""Limits sign-in attempts: by name and address together, in the database, and strangers in total.

Works without Redis or a cache, so that guessing stays slow when they are down.
"""

import math
import random
import threading
import time
from collections import OrderedDict
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

from controlplane.accounts.models.people import BrowserSession, User
from controlplane.accounts.people.session_store import SessionStore
from controlplane.core.errors import TooManyRequests
from controlplane.core.http.requests import client_ip, network_of
from controlplane.core.live.token_bucket import Pace

HASHED_AT_ONCE = 2
HASHING_WAITS_SECONDS = 3.0
MAX_HASHING_WAITERS = 4
MAX_STRANGERS = 1000
"""Maximum of sessions without a sign-in per address, within :data:`STRANGERS_WITHIN`."""
STRANGERS_WITHIN = timedelta(minutes=10)
EVICTED_AT_ONCE = 100
ATTEMPTS_PER_SECOND, ATTEMPTS_AT_ONCE = 1.0, 60.0
"""Limits per address for all names together: enough for an office in the morning."""
MAX_ADDRESSES = 10_000
_hashing = threading.BoundedSemaphore(HASHED_AT_ONCE)
_waiters = threading.BoundedSemaphore(MAX_HASHING_WAITERS)
attempts: OrderedDict[str, Pace] = OrderedDict()
_lock = threading.Lock()


@contextmanager
def hashing() -> Iterator[None]:
    """Limit how many password comparisons run or wait in this process.

    Each takes a third of a second of CPU. Enter this context before the first query, so that a
    waiting request holds no connection.

    Raises :class:`TooManyRequests`.
    """
    if not _hashing.acquire(blocking=False):
        _wait_for_hashing()
    try:
        yield
    finally:
        _hashing.release()


def _wait_for_hashing() -> None:
    if _waiters.acquire(blocking=False):
        try:
            if _hashing.acquire(timeout=HASHING_WAITS_SECONDS):
                return
        finally:
            _waiters.release()
    raise TooManyRequests(
        "Too many people are signing in right now. Try again in a moment.", retry_after=3
    )


def count_attempt(request: HttpRequest, username: str = "") -> None:
    """Count a sign-in attempt of this address, in this process.

    Raises :class:`TooManyRequests` above the limit, unless `username` has a session from the same
    address: a flood of names from an office doesn't lock out the people who work there.
    """
    ip, now = client_ip(request), time.monotonic()
    with _lock:
        network = network_of(ip)
        pace = attempts.pop(network, None) or Pace(ATTEMPTS_PER_SECOND, ATTEMPTS_AT_ONCE)
        attempts[network] = pace
        if len(attempts) > MAX_ADDRESSES:
            attempts.popitem(last=False)
        allowed = pace.allows(now)
    known = BrowserSession.objects.filter(user__username=username, ip=ip)
    if not allowed and not (username and known.exists()):
        raise TooManyRequests(
            "Too many sign-in attempts from your address. Try again in a moment.",
            retry_after=random.randint(2, 10),  # noqa: S311
        )


def begin_as_stranger(request: HttpRequest, now: datetime) -> None:
    """Begin an anonymous session, which holds the sign-in challenge.

    Each is a row. Beyond `MAX_STRANGERS` of one address the oldest are deleted, so others at that
    address can't block a sign-in.
    """
    if request.session.session_key is not None:
        return
    ip = client_ip(request)
    theirs = BrowserSession.objects.filter(user=None, ip=ip, started_at__gt=now - STRANGERS_WITHIN)
    if theirs.count() >= MAX_STRANGERS:
        oldest = theirs.order_by("started_at").values_list("pk", flat=True)[:EVICTED_AT_ONCE]
        BrowserSession.objects.filter(user=None, pk__in=list(oldest)).delete()
    agent = request.headers.get("User-Agent", "")
    cast(SessionStore, request.session).begin(ip=ip, user_agent=agent, method="", now=now)


def is_allowed(request: HttpRequest, username: str) -> bool:
    return bool(AxesProxyHandler.is_allowed(request, {"username": username}))


def failed(request: HttpRequest, username: str) -> None:
    """Count a failure other than a password, such as a wrong code; see :func:`locked_out`."""
    AxesProxyHandler.user_login_failed(
        sender=User, credentials={"username": username}, request=request
    )


def forget(request: HttpRequest, username: str) -> None:
    """Reset the failures counted for this name at this address."""
    AxesProxyHandler.reset_attempts(ip_address=client_ip(request), username=username)


def confirming_name(user: User) -> str:
    """Return the name that a person's failures to confirm their identity count for.

    Failed sign-ins don't count for it: else a stranger at the same address could keep somebody who
    is signed in from engaging the global switch. A form strips the space, so nobody can type it.
    """
    return f" {user.username}"


def locked_out(
    request: HttpRequest,
    original_response: object = None,
    credentials: Mapping[str, str] | None = None,
) -> HttpResponse:
    """Return the django-axes lockout response, with the time the lockout ends."""
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
