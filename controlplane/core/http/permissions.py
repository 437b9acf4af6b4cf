"""The actor of a request, and the DRF permissions that it needs."""

from typing import TYPE_CHECKING, cast

from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from controlplane.core.actors import Actor
from controlplane.core.errors import Unauthenticated
from controlplane.core.http.requests import client_ip, request_id_of, session_digest
from controlplane.core.roles import Power

if TYPE_CHECKING:  # It imports this module, by its name in the settings.
    from rest_framework.views import APIView


def actor_of(request: HttpRequest | Request) -> Actor:
    """Return the actor of a request, on the API or on a page behind a sign-in.

    Raises :class:`Unauthenticated` for anonymous requests.
    """
    plain = request._request if isinstance(request, Request) else request
    known = getattr(plain, "actor", None)
    if known is None:
        if not plain.user.is_authenticated:
            raise Unauthenticated("Sign in first.")
        key = plain.session.session_key
        known = plain.user.as_actor(
            session=session_digest(key) if key else "",
            request_id=request_id_of(plain),
            ip=client_ip(plain),
        )
        remember_actor(plain, known)
    return cast(Actor, known)


def remember_actor(request: HttpRequest, actor: Actor) -> None:
    """Set the actor of a request, for :func:`actor_of` and the audit trail."""
    setattr(request, "actor", actor)  # noqa: B010 - Django's class does not declare it


class HasScope(BasePermission):
    """Checks the view's scopes for reading and for changing."""

    def has_permission(self, request: Request, view: "APIView") -> bool:
        actor = getattr(request, "actor", None)
        if actor is None:
            return False
        if request.method in view.allowed_methods:  # Otherwise a 405 follows for every caller.
            actor.require(_scope(request, view))
        return True


class IsAdmin(BasePermission):
    """A signed-in person who administers; no token ever does."""

    def has_permission(self, request: Request, view: "APIView") -> bool:
        actor = getattr(request, "actor", None)
        if actor is None:
            return False
        actor.require_power(Power.ADMINISTER)
        return True


def _scope(request: Request, view: "APIView") -> str:
    name = "read_scope" if request.method in SAFE_METHODS else "write_scope"
    scope = getattr(view, name, None)
    if not isinstance(scope, str):
        raise ImproperlyConfigured(f"{type(view).__name__} does not say its {name}.")
    return scope


def presented_token(request: Request) -> str | None:
    """Return the request's token, if any: `Authorization: Bearer` before `X-API-Key`."""
    kind, _, text = request.headers.get("Authorization", "").partition(" ")
    if kind.lower() == "bearer":
        return text.strip() or request.headers.get("X-API-Key", "")
    return request.headers.get("X-API-Key")
