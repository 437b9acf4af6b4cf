"""HTTP API of the contacts of teams."""

from datetime import datetime
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.accounts.models.teams import Team
from controlplane.core.actors import Actor
from controlplane.core.clock import db_now
from controlplane.core.errors import NotFound
from controlplane.core.http.fields import EmptyBody
from controlplane.core.http.openapi import BY_SESSION
from controlplane.core.http.views import ApiView, Done, mutation

from . import contact_services as contacts
from .api import TargetReference
from .team_contacts import people_on_call


class PersonOnCallShape(serializers.Serializer[Any]):
    name = serializers.CharField()
    username = serializers.CharField(allow_null=True, help_text="Null without an account.")
    team = serializers.CharField(help_text="Slug of the team whose contact it is: this or above.")


class ContactsShape(serializers.Serializer[Any]):
    team = serializers.CharField()
    on_call = serializers.CharField(allow_null=True, help_text="Rotation, or a person.")
    channels = serializers.ListField(child=serializers.CharField())
    escalation = serializers.CharField(allow_null=True)
    person_on_call = PersonOnCallShape(allow_null=True)


class ContactsBody(EmptyBody):
    on_call = TargetReference(required=False, allow_null=True)
    channels = serializers.ListField(child=TargetReference(), required=False)
    escalation = TargetReference(required=False, allow_null=True)


class ContactsView(ApiView):
    read_scope = "switches:read"
    write_scope = "switches:write"

    @extend_schema(responses=ContactsShape)
    def get(self, request: Request, slug: str) -> Response:
        """Return the contacts of a team, and who is on call for it now."""
        if not Team.objects.filter(slug=slug).exists():
            raise NotFound(f"There is no team {slug}.")
        return Response(_render(slug, db_now()))

    @mutation(ContactsBody, ContactsShape, auth=BY_SESSION)
    def put(self, *, body: dict[str, Any], actor: Actor, now: datetime, slug: str) -> Done:
        """Replace the contacts of a team; omitted ones are removed. This needs no approval."""
        contacts.set_contacts(slug=slug, **body, actor=actor, now=now)
        return Done(_render(slug, now))


def _render(slug: str, now: datetime) -> dict[str, Any]:
    person = people_on_call([slug], now).get(slug)
    on_call = person and {
        "name": person.name,
        "username": person.username or None,
        "team": person.team,
    }
    return {"team": slug, **contacts.read_document(slug), "person_on_call": on_call}
