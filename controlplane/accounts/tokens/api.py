"""Token API, for signed-in admins."""

from datetime import datetime, timedelta
from typing import Any

from rest_framework import serializers

from controlplane.accounts.models.people import User
from controlplane.accounts.models.tokens import Token
from controlplane.core import durations
from controlplane.core.actors import Actor
from controlplane.core.errors import InvalidInput
from controlplane.core.http.confirmation import require_fresh
from controlplane.core.http.fields import EmptyBody, Text
from controlplane.core.http.openapi import BY_SESSION
from controlplane.core.http.permissions import IsAdmin
from controlplane.core.http.resources import Resource, TimestampField
from controlplane.core.http.views import ApiView, Done, ListView, mutation
from controlplane.core.roles import ALL_SCOPES

from . import services


class TokenShape(Resource[Token]):
    id = serializers.IntegerField()
    name = serializers.CharField()
    prefix = serializers.CharField()
    owner = serializers.CharField(source="owner.username")
    scopes = serializers.ListField(child=serializers.ChoiceField(sorted(ALL_SCOPES)))
    services = serializers.ListField(
        child=serializers.CharField(),
        help_text="Services that the token may report and poll as; any if empty.",
    )
    created_at = TimestampField()
    expires_at = TimestampField(allow_null=True)
    revoked_at = TimestampField(allow_null=True)
    last_used_at = TimestampField(allow_null=True)


class NewTokenShape(TokenShape):
    token = serializers.CharField(
        allow_null=True,
        help_text="Text of the token, shown once; null in a repeated response and in a dry run.",
    )


class TokenBody(EmptyBody):
    name = Text()
    scopes = serializers.ListField(child=Text(), allow_empty=True)
    services = serializers.ListField(
        child=Text(max_length=120),
        required=False,
        max_length=services.MAX_SERVICES,
        help_text="Services that the token may report and poll as; any if absent or empty.",
    )
    expires_in = Text(required=False, help_text="Lifetime, such as `90d`; unlimited if absent.")
    owner = Text(required=False, help_text="User name of the owner; yourself if absent.")


class RevokeBody(EmptyBody):
    reason = Text(required=False, max_length=2000)


class HandOverBody(EmptyBody):
    owner = Text(help_text="User name of the new owner.")


class TokenList(ListView[Token]):
    """All tokens, including revoked ones, newest first; never their secrets."""

    queryset = Token.objects.select_related("owner")
    serializer_class = TokenShape
    ordering = "-id"
    permission_classes = [IsAdmin]

    @mutation(TokenBody, {201: NewTokenShape}, auth=BY_SESSION)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime) -> Done:
        """Create a token. Its text is only in this response and is never stored."""
        require_fresh(self.request, now)
        token, text = services.create_token(
            name=body["name"],
            owner=_get_owner(body.get("owner"), actor),
            scopes=body["scopes"],
            actor=actor,
            now=now,
            lifetime=_parse_lifetime(body.get("expires_in")),
            limit_to=body.get("services", ()),
        )
        shown = TokenShape.render(token)
        # The secret is never stored, so a repeated request can't return it.
        without = {**shown, "token": None}
        return Done({**shown, "token": text}, status=201, stored_data=without, dry_run_data=without)


class RevokeTokenView(ApiView):
    permission_classes = [IsAdmin]

    @mutation(RevokeBody, TokenShape, auth=BY_SESSION)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime, token_id: int) -> Done:
        """Revoke a token immediately; repeating it changes nothing."""
        require_fresh(self.request, now)
        revoked = services.revoke_token(
            token=services.get_token(token_id),
            actor=actor,
            now=now,
            reason=body.get("reason", "").strip(),
        )
        return Done(TokenShape.render(revoked))


class HandOverView(ApiView):
    permission_classes = [IsAdmin]

    @mutation(HandOverBody, TokenShape, auth=BY_SESSION)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime, token_id: int) -> Done:
        """Transfer a token to another owner, whose role then limits it; its text stays valid."""
        require_fresh(self.request, now)
        token, owner = services.get_token(token_id), _get_owner(body["owner"], actor)
        handed = services.hand_over_token(token=token, owner=owner, actor=actor, now=now)
        return Done(TokenShape.render(handed))


def _get_owner(username: str | None, actor: Actor) -> User:
    by = {"username": username} if username else {"pk": actor.user_id}
    owner = User.objects.filter(**by).first()
    if owner is None:
        raise InvalidInput({"owner": [f"No person is named {username}."]})
    return owner


def _parse_lifetime(expires_in: str | None) -> timedelta | None:
    if not expires_in:
        return None
    try:
        return durations.parse(expires_in)
    except ValueError as error:
        raise InvalidInput({"expires_in": [str(error)]}) from error
