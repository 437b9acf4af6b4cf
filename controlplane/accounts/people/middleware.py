"""Keep the sessions of people who are active."""

from collections.abc import Callable
from typing import cast

from django.contrib.auth import SESSION_KEY
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from controlplane.accounts.people.session_store import SessionStore
from controlplane.core.http import requests
from controlplane.core.http.middleware import BACKGROUND

GetResponse = Callable[[HttpRequest], HttpResponse]


class PresenceMiddleware:
    """Extends the session of an active person; a page's automatic requests don't count."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        session = request.session
        if session.accessed and BACKGROUND not in request.headers:
            cast(SessionStore, session).seen(timezone.now())
        if session.accessed:
            _note_person(request)
        return response


def _note_person(request: HttpRequest) -> None:
    """Record the session's user in the ASGI scope, so that later requests count for that user."""
    noted = getattr(request, "scope", {}).get(requests.SIGNED_IN)
    if noted is not None and request.session.session_key:
        noted[request.session.session_key] = request.session.get(SESSION_KEY)
