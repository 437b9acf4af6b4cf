"""API tokens over HTTP, for admins who are signed in."""

from datetime import datetime, timedelta
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers

from controlplane.accounts.models.people import User
from controlplane.accounts.models.tokens import Token
from controlplane.core import durations
from controlplane.core.actors import Actor
from controlplane.core.canonical import timestamp
from controlplane.core.errors import InvalidInput, NotFound
from controlplane.core.http.confirmation import require_fresh
from controlplane.core.http.fields import MutationBody, Text
from controlplane.core.http.openapi import BY_SESSION
from controlplane.core.http.permissions import IsAdmin
from controlplane.core.http.views import ApiView, Done, ListView, mutation
from controlplane.core.roles import ALL_SCOPES

from . import services


class TokenShape(serializers.Serializer[Token]):
    id = serializers.IntegerField()
    name = serializers.CharField()
    prefix = serializers.CharField()
    owner = serializers.CharField()
    scopes = serializers.ListField(child=serializers.ChoiceField(sorted(ALL_SCOPES)))
    services = serializers.ListField(
        child=serializers.CharField(),
        help_text="Services that the token may report and poll as; empty means any.",
    )
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField(allow_null=True)
    revoked_at = serializers.DateTimeField(allow_null=True)
    last_used_at = serializers.DateTimeField(allow_null=True)

    def to_representation(self, token: Token) -> dict[str, Any]:
        return token_resource(token)


class NewTokenShape(TokenShape):
    token = serializers.CharField(
        allow_null=True, help_text="Shown once: null in a repeated answer and in a dry run."
    )


class TokenBody(MutationBody):
    name = Text()
    scopes = serializers.ListField(child=Text(), allow_empty=True)
    services = serializers.ListField(
        child=Text(max_length=120),
        required=False,
        max_length=services.MAX_SERVICES,
        help_text="Limit the token to reporting and polling as one of these services.",
    )
    expires_in = Text(required=False, help_text="A duration such as `90d`; never, if left out.")
    owner = Text(required=False, help_text="A user name; yourself, if left out.")


class RevokeBody(MutationBody):
    reason = Text(required=False, max_length=2000)


class HandOverBody(MutationBody):
    owner = Text(help_text="The user name of whoever answers for it from now on.")


def token_resource(token: Token) -> dict[str, Any]:
    return {
        "id": token.pk,
        "name": token.name,
        "prefix": token.prefix,
        "owner": token.owner.username,
        "scopes": token.scopes,
        "services": token.services,
        "created_at": timestamp(token.created_at),
        "expires_at": timestamp(token.expires_at) if token.expires_at else None,
        "revoked_at": timestamp(token.revoked_at) if token.revoked_at else None,
        "last_used_at": timestamp(token.last_used_at) if token.last_used_at else None,
    }


class TokenList(ListView[Token]):
    """All tokens, revoked ones included, newest first; never their secrets."""

    queryset = Token.objects.select_related("owner")
    serializer_class = TokenShape
    ordering = "-id"
    permission_classes = [IsAdmin]

    @extend_schema(request=TokenBody, responses={201: NewTokenShape}, auth=BY_SESSION)
    @mutation(TokenBody)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime) -> Done:
        """Make a token. Its text is in this answer and nowhere else."""
        require_fresh(self.request, now)
        token, text = services.create(
            name=body["name"],
            owner=_owner(body.get("owner"), actor),
            scopes=body["scopes"],
            actor=actor,
            now=now,
            lifetime=_lifetime(body.get("expires_in")),
            limit_to=body.get("services", ()),
        )
        shown = token_resource(token)
        # The secret is never stored, so a repeat can't have it again.
        without = {**shown, "token": None}
        return Done({**shown, "token": text}, status=201, stored_data=without, dry_run_data=without)


class RevokeTokenView(ApiView):
    permission_classes = [IsAdmin]

    @extend_schema(request=RevokeBody, responses=TokenShape, auth=BY_SESSION)
    @mutation(RevokeBody)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime, token_id: int) -> Done:
        """End a token now. Revoking it again changes nothing."""
        require_fresh(self.request, now)
        revoked = services.revoke(
            token=_token(token_id), actor=actor, now=now, reason=body.get("reason", "").strip()
        )
        return Done(token_resource(revoked))


class HandOverView(ApiView):
    permission_classes = [IsAdmin]

    @extend_schema(request=HandOverBody, responses=TokenShape, auth=BY_SESSION)
    @mutation(HandOverBody)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime, token_id: int) -> Done:
        """Give a token to another owner, whose role it then follows; its text stays valid."""
        require_fresh(self.request, now)
        token = _token(token_id)
        owner = _owner(body["owner"], actor)
        return Done(
            token_resource(services.hand_over(token=token, owner=owner, actor=actor, now=now))
        )


def _token(token_id: int) -> Token:
    token = Token.objects.filter(pk=token_id).first()
    if token is None:
        raise NotFound(f"There is no token {token_id}.")
    return token


def _owner(username: str | None, actor: Actor) -> User:
    owner = User.objects.filter(
        **({"username": username} if username else {"pk": actor.user_id})
    ).first()
    if owner is None:
        raise InvalidInput({"owner": [f"There is nobody named {username}."]})
    return owner


def _lifetime(expires_in: str | None) -> timedelta | None:
    if not expires_in:
        return None
    try:
        return durations.parse(expires_in)
    except ValueError as error:
        raise InvalidInput({"expires_in": [str(error)]}) from error
