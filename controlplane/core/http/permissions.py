"""The actor of an HTTP request, and DRF permissions."""

from typing import Any, cast

from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from controlplane.core.actors import Actor
from controlplane.core.errors import Forbidden, Unauthenticated
from controlplane.core.http.requests import (
    client_ip,
    request_id_of,
    session_digest,
)
from controlplane.core.roles import Power


def get_http_request(request: HttpRequest | Request) -> HttpRequest:
    return request._request if isinstance(request, Request) else request


def actor_of(request: HttpRequest | Request) -> Actor:
    """Return the actor of an API request or of a signed-in person's page request.

    Raises :class:`Unauthenticated` for anonymous requests.
    """
    plain = get_http_request(request)
    actor = getattr(plain, "actor", None)
    if actor is None:
        if not plain.user.is_authenticated:
            raise Unauthenticated("Sign in first.")
        key = plain.session.session_key
        actor = plain.user.as_actor(
            session=session_digest(key) if key else "",
            request_id=request_id_of(plain),
            ip=client_ip(plain),
        )
        remember_actor(plain, actor)
    return cast(Actor, actor)


def remember_actor(request: HttpRequest, actor: Actor) -> None:
    """Store the actor on the request, where :func:`actor_of` and the request log read it."""
    setattr(request, "actor", actor)  # noqa: B010 - Django's class does not declare it


class HasScope(BasePermission):
    """Permission that requires the view's `read_scope` for safe methods, else its `write_scope`."""

    def has_permission(self, request: Request, view: Any) -> bool:
        actor = getattr(request, "actor", None)
        if actor is not None and request.method in view.allowed_methods:  # Else a 405 follows.
            actor.require(self.get_scope(request, view))
        return actor is not None

    def get_scope(self, request: Request, view: Any) -> str:
        name = "read_scope" if request.method in SAFE_METHODS else "write_scope"
        scope = getattr(view, name, None)
        if not isinstance(scope, str):
            raise ImproperlyConfigured(f"{type(view).__name__} has no {name}.")
        return scope


class IsAdmin(BasePermission):
    """Permission for signed-in admins; tokens never have it."""

    def has_permission(self, request: Request, view: Any) -> bool:
        actor = getattr(request, "actor", None)
        if actor is not None:
            actor.require_power(Power.ADMINISTER)
        return actor is not None


class IsPerson(BasePermission):
    """Permission for signed-in people; tokens are refused."""

    def has_permission(self, request: Request, view: Any) -> bool:
        actor = getattr(request, "actor", None)
        if actor is not None and actor.type != "user":
            raise Forbidden("Only people can use this, not tokens. Sign in.")
        return actor is not None


def read_token(request: Request) -> str | None:
    """Return the token from `Authorization: Bearer` or `X-API-Key`; None if both are missing."""
    kind, _, text = request.headers.get("Authorization", "").partition(" ")
    if kind.lower() == "bearer":
        return text.strip() or request.headers.get("X-API-Key", "")
    return request.headers.get("X-API-Key")
