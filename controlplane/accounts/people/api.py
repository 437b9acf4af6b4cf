"""User API, for signed-in admins."""

import secrets
from datetime import datetime
from typing import Any

from rest_framework import serializers

from controlplane.accounts.models.people import User
from controlplane.core.actors import Actor
from controlplane.core.http.confirmation import require_fresh
from controlplane.core.http.fields import EmptyBody, Flag, Text
from controlplane.core.http.openapi import BY_SESSION
from controlplane.core.http.permissions import IsAdmin
from controlplane.core.http.resources import Resource, TimestampField
from controlplane.core.http.views import ApiView, Done, ListView, mutation
from controlplane.core.roles import Role

from . import services

ROLES = [role.value for role in Role]


class UserShape(Resource[User]):
    id = serializers.IntegerField()
    username = serializers.CharField()
    display_name = serializers.CharField()
    email = serializers.CharField()
    slack_user_id = serializers.CharField()
    role = serializers.ChoiceField(ROLES)
    time_zone = serializers.CharField()
    is_active = serializers.BooleanField()
    must_change_password = serializers.BooleanField(
        help_text="True until the person replaces a password that someone else set."
    )
    created_at = TimestampField()
    last_login = TimestampField(allow_null=True)


class NewUserShape(UserShape):
    password = serializers.CharField(
        allow_null=True,
        help_text="First password, shown once, to be changed at the first sign-in; null in a"
        " repeated response and in a dry run.",
    )


class _ProfileBody(EmptyBody):
    display_name = Text(required=False, max_length=150)
    email = Text(required=False, max_length=254)
    slack_user_id = Text(
        required=False, max_length=40, help_text="Slack member ID, such as U024BE7LH."
    )
    time_zone = Text(required=False, max_length=64)


class UserBody(_ProfileBody):
    username = Text(max_length=150)
    role = serializers.ChoiceField(ROLES, default=Role.VIEWER.value)


class UpdateUserBody(_ProfileBody):
    role = serializers.ChoiceField(ROLES, required=False)
    is_active = Flag(required=False)


class UserList(ListView[User]):
    """All users, including deactivated ones."""

    queryset = User.objects.all()
    serializer_class = UserShape
    ordering = "id"
    permission_classes = [IsAdmin]

    @mutation(UserBody, {201: NewUserShape}, auth=BY_SESSION)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime) -> Done:
        """Create a user. The first password is only in this response."""
        require_fresh(self.request, now)
        password = secrets.token_urlsafe(15)
        user = services.create_user(
            password=password, must_change_password=True, actor=actor, now=now, **body
        )
        shown = UserShape.render(user)
        without = {**shown, "password": None}
        return Done(
            {**shown, "password": password}, status=201, stored_data=without, dry_run_data=without
        )


class UserDetail(ApiView):
    permission_classes = [IsAdmin]

    @mutation(UpdateUserBody, UserShape, auth=BY_SESSION)
    def patch(self, *, body: dict[str, Any], actor: Actor, now: datetime, user_id: int) -> Done:
        """Change a user's role, addresses or active state. One active admin has to remain."""
        require_fresh(self.request, now)
        user = services.change_user(user=services.get_user(user_id), actor=actor, now=now, **body)
        return Done(UserShape.render(user))
