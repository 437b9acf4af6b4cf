"""Middleware that extends a person's session with their activity."""

from collections.abc import Callable
from typing import cast

from django.contrib.auth import SESSION_KEY
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from controlplane.accounts.people.session_store import SessionStore
from controlplane.core.http import requests
from controlplane.core.http.middleware import BACKGROUND


class PresenceMiddleware:
    """Middleware that extends the session with each request, except background requests."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        session = request.session
        if not session.accessed:
            return response
        if BACKGROUND not in request.headers:
            cast(SessionStore, session).record_activity(timezone.now())
        # Later requests of this session count against the limits of its user.
        signed_in = getattr(request, "scope", {}).get(requests.SIGNED_IN)
        if signed_in is not None and session.session_key:
            signed_in[session.session_key] = session.get(SESSION_KEY)
        return response
