"""API callers for tests: people with a session and programs with a token."""

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.db import connection
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone

from controlplane.accounts.models.people import User
from controlplane.accounts.people.session_store import SessionStore
from controlplane.accounts.tokens import services as tokens
from controlplane.core.actors import system_actor
from controlplane.core.http import confirmation
from controlplane.core.roles import Role

MODEL_BACKEND = "django.contrib.auth.backends.ModelBackend"


class Api:
    """The API as one caller sees it; `path` is below `/api/v1`."""

    def __init__(self, client: Client | None = None, **headers: str) -> None:
        self.client = client or Client(raise_request_exception=False)
        self.headers = headers

    def get(self, path: str, params: dict[str, Any] | None = None, **headers: str) -> HttpResponse:
        return self.client.get(build_path(path), params, headers=self._all(headers))

    def post(self, path: str, body: Any = None, **headers: str) -> HttpResponse:
        return self.send("post", path, body, **headers)

    def patch(self, path: str, body: Any = None, **headers: str) -> HttpResponse:
        return self.send("patch", path, body, **headers)

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        content_type: str = "application/json",
        **headers: str,
    ) -> HttpResponse:
        send = getattr(self.client, method)
        return send(
            build_path(path),
            {} if body is None else body,
            content_type=content_type,
            headers=self._all(headers),
        )

    def engage(self, switch: str, **fields: Any) -> HttpResponse:
        """Engage `segment:finance` for a day with a good reason; `fields` override."""
        headers = fields.pop("headers", {})
        body = {"reason": "card payments charged twice", "expires_in": "24h", **fields}
        return self.post(f"/switches/{switch.replace(':', '/')}/engage", body, **headers)

    def _all(self, headers: dict[str, str]) -> dict[str, str]:
        return {name.replace("_", "-"): text for name, text in {**self.headers, **headers}.items()}


def build_path(path: str) -> str:
    return path if path.startswith("/api/") else f"/api/v1{path}"


def at_once(*calls: Callable[[], Any]) -> list[Any]:
    """Run each call in a thread of its own, all started at the same moment; return the results."""
    if not calls:
        return []
    start = threading.Barrier(len(calls))

    def run(call: Callable[[], Any]) -> Any:
        start.wait(timeout=10)
        try:
            return call()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(calls)) as threads:
        return list(threads.map(run, calls))


def person(role: str = "operator", username: str | None = None) -> User:
    return User.objects.create_user(username or f"a-{role}", role=role)


def signed_in(user: User, *, csrf: bool = False) -> Api:
    return Api(browser_of(user, csrf=csrf))


def browser_of(user: User, *, csrf: bool = False) -> Client:
    """Return a browser signed in just now."""
    client = Client(enforce_csrf_checks=csrf, raise_request_exception=False)
    # As `force_login` does, with two statements instead of a dozen.
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = MODEL_BACKEND
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session[confirmation.KEY] = timezone.now().timestamp()
    session.create()
    client.cookies[settings.SESSION_COOKIE_NAME] = session.session_key
    return client


def as_role(role: str) -> Api:
    return signed_in(person(role))


def token_text(
    owner: User, scopes: Iterable[str], name: str = "ci", lifetime: timedelta | None = None
) -> str:
    _, text = tokens.create_token(
        name=name,
        owner=owner,
        scopes=scopes,
        actor=system_actor("test"),
        now=timezone.now(),
        lifetime=lifetime,
    )
    return text


def with_token(*scopes: str, owner: User | None = None) -> Api:
    owner = owner or person(Role.ADMIN, "token-owner")
    return Api(authorization=f"Bearer {token_text(owner, scopes)}")
