"""Who asks: a program by its token, or a person by their session. Both become an actor."""

from functools import partial
from typing import TYPE_CHECKING, Any, cast

from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject
from rest_framework.authentication import BaseAuthentication, CSRFCheck
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from controlplane.core.actors import Actor
from controlplane.core.errors import Forbidden, Unauthenticated
from controlplane.core.http.requests import client_ip, request_id_of
from controlplane.core.people import services as people
from controlplane.core.people.models import User
from controlplane.core.people.session_store import digest
from controlplane.core.roles import Power
from controlplane.core.tokens import lookup
from controlplane.core.tokens import services as tokens
from controlplane.core.tokens.lookup import KnownToken

if TYPE_CHECKING:  # It imports this module, by its name in the settings.
    from rest_framework.views import APIView


def actor_of(request: HttpRequest | Request) -> Actor:
    """Who makes this request, on the API or on a page behind a sign-in.

    Raises :class:`Unauthenticated` if nobody is signed in.
    """
    plain = request._request if isinstance(request, Request) else request
    known = getattr(plain, "actor", None)
    if known is None:
        if not plain.user.is_authenticated:
            raise Unauthenticated("Sign in first.")
        known = _remember(plain, _person(plain.user, plain))
    return cast(Actor, known)


class TokenAuthentication(BaseAuthentication):
    """`Authorization: Bearer sg_…`, else `X-API-Key`. A wrong token never falls back to a session.

    Another scheme in `Authorization`, such as a proxy's own, is ignored. Reads use the token table
    in memory if the process has one; writes query the database.
    """

    def authenticate(self, request: Request) -> tuple[User, KnownToken] | None:
        text = presented_token(request)
        if text is None:
            return None
        token = lookup.find(text) if request.method in SAFE_METHODS else None
        owner: Any = None
        if token is None:
            row = tokens.authenticate(text)
            token, owner = tokens.to_known_token(row), row.owner
        actor = Actor(
            type="token",
            name=token.name,
            user_id=token.owner_id,
            token_id=token.token_id,
            role=token.role,
            scopes=token.scopes,
            services=token.services,
            request_id=request_id_of(request._request),
            ip=client_ip(request._request),
        )
        _remember(request._request, actor)
        if owner is None:
            owner = SimpleLazyObject(partial(User.objects.get, pk=token.owner_id))
        return owner, token

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="switchgear"'


class PersonAuthentication(BaseAuthentication):
    """The browser's session; whatever changes something has to carry the CSRF token as well."""

    def authenticate(self, request: Request) -> tuple[User, None] | None:
        user = request._request.user
        if not user.is_authenticated:
            return None
        self._check_csrf(request)
        _remember(request._request, _person(user, request._request))
        return user, None

    def _check_csrf(self, request: Request) -> None:
        check = CSRFCheck(_no_response)
        check.process_request(request._request)
        refusal = check.process_view(request._request, _no_response, (), {})
        if refusal:
            raise Forbidden(
                f"{refusal} A signed-in browser sends the cookie csrftoken back as X-CSRFToken."
            )


class HasScope(BasePermission):
    """The view says which scope reading takes and which one changing takes."""

    def has_permission(self, request: Request, view: "APIView") -> bool:
        actor = getattr(request, "actor", None)
        if actor is None:
            return False
        if request.method in view.allowed_methods:  # Otherwise a 405 follows, whoever asks.
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
    """The token a request carries, if any: `Authorization: Bearer` before `X-API-Key`."""
    kind, _, text = request.headers.get("Authorization", "").partition(" ")
    if kind.lower() == "bearer":
        return text.strip() or request.headers.get("X-API-Key", "")
    return request.headers.get("X-API-Key")


def _person(user: User, request: HttpRequest) -> Actor:
    key = request.session.session_key
    return people.actor_for(
        user,
        session=digest(key) if key else "",
        request_id=request_id_of(request),
        ip=client_ip(request),
    )


def _remember(request: HttpRequest, actor: Actor) -> Actor:
    setattr(request, "actor", actor)  # noqa: B010 - Django's class does not declare it
    return actor


def _no_response(_request: Any, *_args: Any) -> Any:
    """CSRFCheck wants what comes after it; nothing does."""
