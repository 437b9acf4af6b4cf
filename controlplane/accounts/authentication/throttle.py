"""Rate limits of sign-in attempts, by user name and address and by address; without Redis."""

import math
import random
import threading
import time
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
from controlplane.core.http.client_address import network_of
from controlplane.core.http.requests import client_ip
from controlplane.core.rate_limiter import RateLimit, TokenBuckets

HASHED_AT_ONCE = 2
HASHING_WAITS_SECONDS = 3.0
MAX_HASHING_WAITERS = 4
MAX_ANONYMOUS = 1000
"""Maximum number of anonymous sessions per address within :data:`ANONYMOUS_WITHIN`."""
ANONYMOUS_WITHIN = timedelta(minutes=10)
EVICTED_AT_ONCE = 100
ATTEMPTS = RateLimit(per_second=1, burst=60)
"""Limit of sign-in attempts per address, high enough for an office behind one address."""
MAX_ADDRESSES = 10_000
_hashing = threading.BoundedSemaphore(HASHED_AT_ONCE)
_waiters = threading.BoundedSemaphore(MAX_HASHING_WAITERS)
attempts = TokenBuckets(ATTEMPTS, MAX_ADDRESSES)
_lock = threading.Lock()


@contextmanager
def limit_hashing() -> Iterator[None]:
    """Context manager: lets few password comparisons run at once, as each takes 0.3 s of CPU.

    Enter it before the first query, so that a waiting request holds no database connection. Raises
    :class:`TooManyRequests` if too many requests wait, or this request waits too long.
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
    """Count a sign-in attempt from this address; raise :class:`TooManyRequests` above the limit.

    A person who has a session from the address has no limit, so that a flood doesn't lock them out.
    """
    ip, now = client_ip(request), time.monotonic()
    with _lock:
        allowed = not attempts.acquire(network_of(ip), now)
    known = BrowserSession.objects.filter(user__username=username, ip=ip)
    if not allowed and not (username and known.exists()):
        raise TooManyRequests(
            "Too many sign-in attempts from your address. Try again in a moment.",
            retry_after=random.randint(2, 10),  # noqa: S311
        )


def begin_anonymous_session(request: HttpRequest, now: datetime) -> None:
    """Begin a session for a passkey challenge; beyond a limit, delete the address's oldest ones."""
    if request.session.session_key is not None:
        return
    ip = client_ip(request)
    theirs = BrowserSession.objects.filter(user=None, ip=ip, started_at__gt=now - ANONYMOUS_WITHIN)
    if theirs.count() >= MAX_ANONYMOUS:
        oldest = theirs.order_by("started_at").values_list("pk", flat=True)[:EVICTED_AT_ONCE]
        BrowserSession.objects.filter(user=None, pk__in=list(oldest)).delete()
    agent = request.headers.get("User-Agent", "")
    cast(SessionStore, request.session).begin(ip=ip, user_agent=agent, method="", now=now)


def is_allowed(request: HttpRequest, username: str) -> bool:
    return bool(AxesProxyHandler.is_allowed(request, {"username": username}))


def count_failure(request: HttpRequest, username: str) -> None:
    """Count a failure, such as a wrong code, towards the lockout of `username`."""
    AxesProxyHandler.user_login_failed(
        sender=User, credentials={"username": username}, request=request
    )


def reset_failures(request: HttpRequest, username: str) -> None:
    AxesProxyHandler.reset_attempts(ip_address=client_ip(request), username=username)


def get_confirmation_name(user: User) -> str:
    """Return the name under which a person's failed confirmations are counted.

    It differs from the user name, so that a stranger's failed sign-ins can't block confirmations.
    It begins with a space, so nobody can sign in with it.
    """
    return f" {user.username}"


def locked_out(
    request: HttpRequest,
    original_response: object = None,
    credentials: Mapping[str, str] | None = None,
) -> HttpResponse:
    """Return the page that django-axes shows during a lockout, with the time at which it ends."""
    name = (credentials or {}).get("username") or read_username(request)
    attempts = AccessAttempt.objects.filter(username=name, ip_address=client_ip(request))
    last = attempts.order_by("-attempt_time").first()
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


def read_username(request: HttpRequest) -> str:
    """Return the typed user name, without null characters, cut to the length of its column."""
    return request.POST.get("username", "").replace("\x00", "")[:150]
