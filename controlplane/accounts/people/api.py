"""People over HTTP, for admins who are signed in."""

import secrets
from datetime import datetime
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers

from controlplane.accounts.models.people import User
from controlplane.core.actors import Actor
from controlplane.core.canonical import timestamp
from controlplane.core.errors import NotFound
from controlplane.core.http.confirmation import require_fresh
from controlplane.core.http.fields import Flag, MutationBody, Text
from controlplane.core.http.openapi import BY_SESSION
from controlplane.core.http.permissions import IsAdmin
from controlplane.core.http.views import ApiView, Done, ListView, mutation
from controlplane.core.roles import Role

from . import services

ROLES = [role.value for role in Role]


class UserShape(serializers.Serializer[User]):
    id = serializers.IntegerField()
    username = serializers.CharField()
    display_name = serializers.CharField()
    email = serializers.CharField()
    slack_user_id = serializers.CharField()
    role = serializers.ChoiceField(ROLES)
    time_zone = serializers.CharField()
    is_active = serializers.BooleanField()
    created_at = serializers.DateTimeField()
    last_login = serializers.DateTimeField(allow_null=True)

    def to_representation(self, user: User) -> dict[str, Any]:
        return user_resource(user)


class NewUserShape(UserShape):
    password = serializers.CharField(
        allow_null=True, help_text="Shown once: null in a repeated answer and in a dry run."
    )


class _About(MutationBody):
    display_name = Text(required=False, max_length=150)
    email = Text(required=False, max_length=254)
    slack_user_id = Text(required=False, max_length=40, help_text="Such as U024BE7LH.")
    time_zone = Text(required=False, max_length=64)


class UserBody(_About):
    username = Text(max_length=150)
    role = serializers.ChoiceField(ROLES, default=Role.VIEWER.value)


class UserChangeBody(_About):
    role = serializers.ChoiceField(ROLES, required=False)
    is_active = Flag(required=False)


def user_resource(user: User) -> dict[str, Any]:
    return {
        "id": user.pk,
        "username": user.username,
        "display_name": user.display_name,
        "email": user.email,
        "slack_user_id": user.slack_user_id,
        "role": user.role,
        "time_zone": user.time_zone,
        "is_active": user.is_active,
        "created_at": timestamp(user.created_at),
        "last_login": timestamp(user.last_login) if user.last_login else None,
    }


class UserList(ListView[User]):
    """Everybody who can sign in, or could."""

    queryset = User.objects.all()
    serializer_class = UserShape
    ordering = "id"
    permission_classes = [IsAdmin]

    @extend_schema(request=UserBody, responses={201: NewUserShape}, auth=BY_SESSION)
    @mutation(UserBody)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime) -> Done:
        """Make a person who can sign in. The first password is in this answer and nowhere else."""
        require_fresh(self.request, now)
        password = secrets.token_urlsafe(15)
        user = services.create_user(password=password, actor=actor, now=now, **body)
        shown = user_resource(user)
        without = {**shown, "password": None}
        return Done(
            {**shown, "password": password}, status=201, stored_data=without, dry_run_data=without
        )


class UserDetail(ApiView):
    permission_classes = [IsAdmin]

    @extend_schema(request=UserChangeBody, responses=UserShape, auth=BY_SESSION)
    @mutation(UserChangeBody)
    def patch(self, *, body: dict[str, Any], actor: Actor, now: datetime, user_id: int) -> Done:
        """Change somebody's role, addresses or activity; the last active admin can't be lost."""
        require_fresh(self.request, now)
        user = User.objects.filter(pk=user_id).first()
        if user is None:
            raise NotFound(f"There is no person {user_id}.")
        return Done(user_resource(services.change_user(user=user, actor=actor, now=now, **body)))
