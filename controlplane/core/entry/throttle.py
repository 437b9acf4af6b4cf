"""Who has to wait after too many failures: by name and address together, in the database.

Redis and every cache may be down, and guessing stays as slow.
"""

import math
from collections.abc import Mapping
from datetime import timedelta

from axes.handlers.proxy import AxesProxyHandler
from axes.helpers import get_cool_off
from axes.models import AccessAttempt
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.cache import add_never_cache_headers

from controlplane.core.http.requests import client_ip
from controlplane.core.people.models import User


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
