"""API for browser sessions: a person's own, and for admins those of others."""

from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.views import APIView

from controlplane.accounts.models.people import BrowserSession, User
from controlplane.core.actors import Actor
from controlplane.core.canonical import timestamp
from controlplane.core.clock import db_now
from controlplane.core.errors import Forbidden, InvalidInput, NotFound
from controlplane.core.http.confirmation import require_fresh
from controlplane.core.http.fields import Filters, MutationBody, Text
from controlplane.core.http.openapi import BY_SESSION
from controlplane.core.http.permissions import actor_of
from controlplane.core.http.requests import session_digest
from controlplane.core.http.views import ApiView, Done, ListView, mutation
from controlplane.core.roles import Power

from . import devices, sessions


class IsPerson(BasePermission):
    """Allows signed-in people; a token has no sessions."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        actor = getattr(request, "actor", None)
        if actor is not None and actor.type != "user":
            raise Forbidden("Sessions are a person's: sign in.")
        return actor is not None


class SessionShape(serializers.Serializer[BrowserSession]):
    id = serializers.CharField(help_text="Names the session; it lets nobody in.")
    user = serializers.CharField()
    device = serializers.CharField(help_text="Such as `Firefox on Linux`.")
    ip = serializers.CharField()
    method = serializers.CharField(help_text="How they came in: `password`, `password + code`, …")
    started_at = serializers.DateTimeField()
    last_seen_at = serializers.DateTimeField()
    ends_at = serializers.DateTimeField(
        help_text="Doing something puts it off, until the longest time."
    )
    is_this = serializers.BooleanField(help_text="Whether this request came in it.")

    def to_representation(self, session: BrowserSession) -> dict[str, Any]:
        return session_resource(session, self.context["request"])


class SessionFilters(Filters):
    user = Text(required=False, help_text="A user name; yourself, if left out. For admins.")


class EndedShape(serializers.Serializer[Any]):
    ended = serializers.IntegerField(help_text="How many sessions that were.")


class EndSessionsBody(MutationBody):
    user = Text(required=False, help_text="A user name; yourself, if left out. For admins.")


def session_resource(session: BrowserSession, request: Request) -> dict[str, Any]:
    return {
        "id": session.pk,
        "user": session.user.username if session.user else "",
        "device": devices.named(session.user_agent),
        "ip": session.ip,
        "method": session.method,
        "started_at": timestamp(session.started_at),
        "last_seen_at": timestamp(session.last_seen_at),
        "ends_at": timestamp(session.expire_date),
        "is_this": session.pk == session_digest(_key(request) or ""),
    }


class SessionList(ListView[BrowserSession]):
    """Sessions of signed-in browsers."""

    queryset = BrowserSession.objects.select_related("user").defer("session_data")
    serializer_class = SessionShape
    ordering = "session_key"
    filters = SessionFilters
    permission_classes = [IsPerson]

    def apply_filters(
        self, rows: QuerySet[BrowserSession], filters: dict[str, Any]
    ) -> QuerySet[BrowserSession]:
        whose = _whose(filters.get("user"), actor_of(self.request))
        return rows.filter(user=whose, expire_date__gt=db_now())


class EndSessions(ApiView):
    permission_classes = [IsPerson]

    @extend_schema(request=EndSessionsBody, responses=EndedShape, auth=BY_SESSION)
    @mutation(EndSessionsBody)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime) -> Done:
        """End all sessions of a person, except the requesting one."""
        user = _whose(body.get("user"), actor)
        _confirm_for(user, actor, self.request, now)
        ended = sessions.end_all(user=user, actor=actor, now=now, but=_key(self.request))
        return Done({"ended": ended})


class SessionView(ApiView):
    permission_classes = [IsPerson]

    @extend_schema(request=MutationBody, responses={200: EndedShape}, auth=BY_SESSION)
    @mutation(MutationBody)
    def delete(self, *, body: dict[str, Any], actor: Actor, now: datetime, session_id: str) -> Done:
        """End one session; another person's requires an admin."""
        found = BrowserSession.objects.open(now).filter(pk=session_id.replace("\x00", ""))
        session = found.select_related("user").first()
        if session is None or session.user is None or not _may(actor, session.user):
            raise NotFound("There is no such session, or it has ended.")
        _confirm_for(session.user, actor, self.request, now)
        sessions.end(user=session.user, session_id=session.pk, actor=actor, now=now)
        return Done({"ended": 1})


def _may(actor: Actor, user: User) -> bool:
    return user.pk == actor.user_id or actor.has(Power.ADMINISTER)


def _confirm_for(user: User, actor: Actor, request: Request, now: datetime) -> None:
    """Ending one's own takes no confirming: that is how one gets rid of a stranger."""
    if user.pk != actor.user_id:
        require_fresh(request, now)


def _whose(username: str | None, actor: Actor) -> User:
    """Return the person; another one than the actor requires the power to administer."""
    asked = username or actor.name
    if asked != actor.name:
        actor.require_power(Power.ADMINISTER)
    user = User.objects.filter(username=asked.replace("\x00", "")).first()
    if user is None:
        raise InvalidInput({"user": [f"There is nobody named {username}."]})
    return user


def _key(request: Request) -> str | None:
    key: str | None = request._request.session.session_key
    return key
