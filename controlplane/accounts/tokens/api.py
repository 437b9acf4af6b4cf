"""Token API, for signed-in admins."""

from datetime import datetime, timedelta
from typing import Any

from rest_framework import serializers

from controlplane.accounts.models.people import User
from controlplane.accounts.models.teams import MAX_PATTERN_LENGTH
from controlplane.accounts.models.tokens import Token, TokenCaller
from controlplane.core import durations
from controlplane.core.actors import Actor
from controlplane.core.errors import Forbidden, InvalidInput
from controlplane.core.http.confirmation import require_fresh
from controlplane.core.http.fields import EmptyBody, Flag, Text
from controlplane.core.http.openapi import BY_SESSION
from controlplane.core.http.permissions import IsAdmin, IsPerson
from controlplane.core.http.resources import Resource, TimestampField
from controlplane.core.http.views import ApiView, Done, ListView, mutation
from controlplane.core.roles import ALL_SCOPES, Power

from . import rotation, services
from .services import MAX_PATTERNS, MAX_SERVICES

DEFAULT_OVERLAP = "24h"


class CallerShape(Resource[TokenCaller]):
    service = serializers.CharField()
    used_at = TimestampField(allow_null=True, help_text="Last use; null if it was only refused.")
    refused_at = TimestampField(
        allow_null=True,
        help_text="Last time that it was refused, or not counted, because a team owns the service.",
    )


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
    team = serializers.CharField(
        source="team.slug",
        default=None,
        allow_null=True,
        help_text="Slug of the team that the token acts for; null for a person's token.",
    )
    patterns = serializers.ListField(
        child=serializers.CharField(),
        help_text="Patterns of the resources that the token may change; any if empty.",
    )
    replaces = serializers.CharField(
        source="replaces.prefix",
        default=None,
        allow_null=True,
        help_text="Prefix of the token that this one replaces by rotation; null without one.",
    )
    only_owned = serializers.BooleanField(
        help_text="True if the token may change only what its team, or its owner's teams, own.",
    )
    created_at = TimestampField()
    expires_at = TimestampField(allow_null=True)
    revoked_at = TimestampField(allow_null=True)
    last_used_at = TimestampField(allow_null=True)
    callers = CallerShape(
        source="callers.all",
        many=True,
        help_text="Services in whose names programs used the token in the last 30 days.",
    )


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
        max_length=MAX_SERVICES,
        help_text="Services that the token may report and poll as; any if absent or empty.",
    )
    team = Text(required=False, help_text="Slug of a team, for which the token acts.")
    patterns = serializers.ListField(
        child=Text(max_length=MAX_PATTERN_LENGTH),
        required=False,
        max_length=MAX_PATTERNS,
        help_text="Patterns of the resources that the token may change, such as `experiment:*`; "
        "any if absent or empty.",
    )
    only_owned = Flag(
        required=False,
        help_text="Whether the token may change only what its team, or its owner's teams, own.",
    )
    expires_in = Text(required=False, help_text="Lifetime, such as `90d`; unlimited if absent.")
    owner = Text(required=False, help_text="User name of the owner; yourself if absent.")


class RotateBody(EmptyBody):
    overlap = Text(
        required=False,
        help_text="How long the present token stays valid, such as `24h` (default), at most `30d`; "
        "`0` ends it now.",
    )
    expires_in = Text(
        required=False,
        help_text="Lifetime of the successor, such as `90d`; that of the present token if absent. "
        "Only admins choose a longer one.",
    )


class RevokeBody(EmptyBody):
    reason = Text(required=False, max_length=2000)


class HandOverBody(EmptyBody):
    owner = Text(
        required=False,
        help_text="User name of the new owner; the present one if absent, with `team`.",
    )
    team = Text(required=False, help_text="Slug of the team; the token is the owner's if absent.")


class TokenList(ListView[Token]):
    """All tokens, including revoked ones, newest first; never their secrets."""

    queryset = Token.objects.select_related("owner", "team", "replaces").prefetch_related("callers")
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
            team=services.find_team(body.get("team", "")),
            patterns=body.get("patterns", ()),
            only_owned=body.get("only_owned", False),
        )
        return _show_once(token, text)


class RotateTokenView(ApiView):
    """Replaces a token: for admins, its owner, and for a team's token who may edit the team."""

    permission_classes = [IsPerson]

    @mutation(RotateBody, {201: NewTokenShape}, auth=BY_SESSION)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime, token_id: int) -> Done:
        """Create a token's successor, with the same rights. Its text is only in this response.

        The present token stays valid for the overlap.
        """
        require_fresh(self.request, now)
        token = _get_manageable(token_id, actor)
        successor, text = rotation.rotate_token(
            token=token,
            overlap=rotation.parse_overlap(body.get("overlap") or DEFAULT_OVERLAP),
            lifetime=_parse_lifetime(body.get("expires_in")),
            actor=actor,
            now=now,
        )
        return _show_once(successor, text)


class RevokeTokenView(ApiView):
    permission_classes = [IsPerson]

    @mutation(RevokeBody, TokenShape, auth=BY_SESSION)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime, token_id: int) -> Done:
        """Revoke a token immediately; repeating it changes nothing."""
        require_fresh(self.request, now)
        revoked = services.revoke_token(
            token=_get_manageable(token_id, actor),
            actor=actor,
            now=now,
            reason=body.get("reason", "").strip(),
        )
        return Done(TokenShape.render(revoked))


class HandOverView(ApiView):
    permission_classes = [IsAdmin]

    @mutation(HandOverBody, TokenShape, auth=BY_SESSION)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime, token_id: int) -> Done:
        """Transfer a token to another owner, whose role then limits it, or to a team.

        Its text stays valid.
        """
        require_fresh(self.request, now)
        if not (body.get("owner") or body.get("team")):
            raise InvalidInput({"owner": ["Name the new owner, or the team."]})
        token = services.get_token(token_id, Token.objects.select_related("owner"))
        handed = services.hand_over_token(
            token=token,
            owner=_get_owner(body["owner"], actor) if body.get("owner") else token.owner,
            team=services.find_team(body.get("team", "")),
            actor=actor,
            now=now,
        )
        return Done(TokenShape.render(handed))


def _show_once(token: Token, text: str) -> Done:
    shown = TokenShape.render(token)
    # The secret is never stored, so a repeated request can't return it.
    without = {**shown, "token": None}
    return Done({**shown, "token": text}, status=201, stored_data=without, dry_run_data=without)


def _get_manageable(token_id: int, actor: Actor) -> Token:
    tokens = Token.objects.select_related("owner", "team")
    if not actor.has(Power.ADMINISTER) and not tokens.filter(pk=token_id).exists():
        raise Forbidden("Only admins, a token's owner and the leads of its team may change it.")
    token = services.get_token(token_id, tokens)
    services.require_may_manage(token, actor)
    return token


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
