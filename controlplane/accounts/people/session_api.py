"""API of browser sessions: a person's own, and for admins those of others."""

from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.request import Request

from controlplane.accounts.models.people import BrowserSession, User
from controlplane.core.actors import Actor
from controlplane.core.clock import db_now
from controlplane.core.errors import InvalidInput, NotFound
from controlplane.core.http.confirmation import require_fresh
from controlplane.core.http.fields import EmptyBody, Filters, Text
from controlplane.core.http.openapi import BY_SESSION
from controlplane.core.http.permissions import IsPerson, actor_of
from controlplane.core.http.requests import session_digest
from controlplane.core.http.resources import Resource, TimestampField
from controlplane.core.http.views import ApiView, Done, ListView, mutation
from controlplane.core.roles import Power

from . import devices, sessions


class DeviceField(serializers.CharField):
    def to_representation(self, value: str) -> str:
        return devices.name_device(value)


class IsRequestingField(serializers.BooleanField):
    def to_representation(self, value: Any) -> bool:
        return bool(value == session_digest(_get_session_key(self.context["request"]) or ""))


class SessionShape(Resource[BrowserSession]):
    id = serializers.CharField(
        source="session_key", help_text="Identifies the session, but does not authenticate."
    )
    user = serializers.CharField(source="user.username")
    device = DeviceField(source="user_agent", help_text="Such as `Firefox on Linux`.")
    ip = serializers.CharField()
    method = serializers.CharField(help_text="Sign-in method: `password`, `password + code`, …")
    started_at = TimestampField()
    last_seen_at = TimestampField()
    ends_at = TimestampField(
        source="expire_date", help_text="Activity extends it, up to the maximum session duration."
    )
    is_this = IsRequestingField(
        source="session_key", help_text="True for the session of this request."
    )


class _UserField(Text):
    def __init__(self, **options: Any) -> None:
        about = "User name; yourself if absent. Other users require an admin."
        super().__init__(**{"required": False, "help_text": about, **options})


class SessionFilters(Filters):
    user = _UserField()


class EndedSessionsShape(serializers.Serializer[Any]):
    ended = serializers.IntegerField(help_text="Number of ended sessions.")


class EndSessionsBody(EmptyBody):
    user = _UserField()


class SessionList(ListView[BrowserSession]):
    """Open browser sessions of a person."""

    queryset = BrowserSession.objects.select_related("user").defer("session_data")
    serializer_class = SessionShape
    ordering = "session_key"
    filters = SessionFilters
    permission_classes = [IsPerson]

    def apply_filters(
        self, rows: QuerySet[BrowserSession], filters: dict[str, Any]
    ) -> QuerySet[BrowserSession]:
        user = _get_user(filters.get("user"), actor_of(self.request))
        return rows.filter(user=user, expire_date__gt=db_now())


class EndSessions(ApiView):
    permission_classes = [IsPerson]

    @mutation(EndSessionsBody, EndedSessionsShape, auth=BY_SESSION)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime) -> Done:
        """End all sessions of a person, except the session of this request."""
        user = _get_user(body.get("user"), actor)
        _confirm_for(user, actor, self.request, now)
        here = _get_session_key(self.request)
        return Done({"ended": sessions.end_all(user=user, actor=actor, now=now, but=here)})


class SessionView(ApiView):
    permission_classes = [IsPerson]

    @mutation(EmptyBody, {200: EndedSessionsShape}, auth=BY_SESSION)
    def delete(self, *, body: dict[str, Any], actor: Actor, now: datetime, session_id: str) -> Done:
        """End one session. Ending another person's session requires an admin."""
        found = BrowserSession.objects.open(now).filter(pk=session_id.replace("\x00", ""))
        if not actor.has(Power.ADMINISTER):
            found = found.filter(user_id=actor.user_id or 0)
        session = found.select_related("user").first()
        if session is None or session.user is None:
            raise NotFound("This session doesn't exist or has ended.")
        _confirm_for(session.user, actor, self.request, now)
        sessions.end_session(user=session.user, session_id=session.pk, actor=actor, now=now)
        return Done({"ended": 1})


def _confirm_for(user: User, actor: Actor, request: Request, now: datetime) -> None:
    """Require a recently confirmed identity, unless the actor ends a session of their own."""
    if user.pk != actor.user_id:
        require_fresh(request, now)


def _get_user(username: str | None, actor: Actor) -> User:
    """Return the named user, by default the actor; only admins may name others."""
    name = username or actor.name
    if name != actor.name:
        actor.require_power(Power.ADMINISTER)
    user = User.objects.filter(username=name.replace("\x00", "")).first()
    if user is None:
        raise InvalidInput({"user": [f"No person is named {username}."]})
    return user


def _get_session_key(request: Request) -> str | None:
    key: str | None = request._request.session.session_key
    return key
