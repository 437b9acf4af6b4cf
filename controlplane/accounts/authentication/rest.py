"""DRF authentication classes: by API token for programs, by browser session for people."""

from functools import partial
from typing import Any

from django.conf import settings
from django.utils.functional import SimpleLazyObject
from rest_framework.authentication import BaseAuthentication, CSRFCheck
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request

from controlplane.accounts.models.people import User
from controlplane.accounts.tokens import lookup
from controlplane.accounts.tokens import services as tokens
from controlplane.accounts.tokens.lookup import KnownToken
from controlplane.core.actors import Actor
from controlplane.core.errors import Forbidden
from controlplane.core.http.permissions import actor_of, read_token, remember_actor
from controlplane.core.http.requests import client_ip, request_id_of


class TokenAuthentication(BaseAuthentication):
    """Authentication by the token in `Authorization: Bearer sg_…` or `X-API-Key`, never by session.

    For reads (GET, HEAD), the token is looked up in memory if the process has tokens there. For
    writes, it is looked up in the database.
    """

    def authenticate(self, request: Request) -> tuple[User, KnownToken] | None:
        text = read_token(request)
        if text is None:
            return None
        token = lookup.find_token(text) if request.method in SAFE_METHODS else None
        owner: Any = None
        if token is None:
            row = tokens.authenticate_token(text)
            token, owner = tokens.to_known_token(row), row.owner
        actor = Actor(
            type="token",
            name=token.name,
            user_id=token.owner_id,
            token_id=token.token_id,
            role=token.role,
            scopes=token.scopes,
            services=token.services,
            team=token.team,
            patterns=token.patterns,
            only_owned=token.only_owned,
            request_id=request_id_of(request._request),
            ip=client_ip(request._request),
        )
        remember_actor(request._request, actor)
        owner = owner or SimpleLazyObject(partial(User.objects.get, pk=token.owner_id))
        return owner, token

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="switchgear"'


class PersonAuthentication(BaseAuthentication):
    """Authentication by the browser's session; writes also need the CSRF token."""

    def authenticate(self, request: Request) -> tuple[User, None] | None:
        user = request._request.user
        if not user.is_authenticated:
            return None
        check = CSRFCheck(_no_response)
        check.process_request(request._request)
        refusal = check.process_view(request._request, _no_response, (), {})
        if refusal:
            raise Forbidden(
                f"{refusal} A signed-in browser sends the cookie {settings.CSRF_COOKIE_NAME} back"
                " as X-CSRFToken."
            )
        actor_of(request)
        return user, None


def _no_response(_request: Any, *_args: Any) -> Any:
    pass
