"""API of the attention items: everything that waits for a person."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.core.attention import services
from controlplane.core.clock import db_now
from controlplane.core.http.fields import Filters
from controlplane.core.http.pagination import PAGE_PARAMETERS, CursorPages, paginate_list
from controlplane.core.http.permissions import actor_of
from controlplane.core.http.resources import Resource, TimestampField
from controlplane.core.http.views import ApiView
from controlplane.core.message_templates import SEVERITIES
from controlplane.core.page_registry import DIALOG, LINK, POST, AttentionAction, AttentionItem
from controlplane.core.team_filter import TEAM_HELP, parse_team_filter


class AttentionActionShape(serializers.Serializer[AttentionAction]):
    label = serializers.CharField()  # type: ignore[assignment]
    path = serializers.CharField(help_text="Console path of the action's form or page.")
    method = serializers.ChoiceField(
        (DIALOG, POST, LINK),
        help_text="`dialog`: a form to fill in; `post`: done immediately; `link`: a page to read.",
    )
    permission = serializers.CharField(help_text="The scope or the power that it takes.")


class AttentionItemShape(Resource[AttentionItem]):
    kind = serializers.CharField()
    severity = serializers.ChoiceField(SEVERITIES)
    title = serializers.CharField()
    detail = serializers.CharField()
    path = serializers.CharField(help_text="Console page on which the item can be resolved.")
    since = TimestampField()
    due_at = TimestampField(
        allow_null=True, help_text="Time of an automatic change for the worse, if any."
    )
    resource = serializers.CharField(
        help_text="What a team may own of it, such as `segment:finance`; empty if nothing."
    )
    actions = AttentionActionShape(many=True)


class AttentionPageShape(serializers.Serializer[Any]):
    next = serializers.URLField(allow_null=True)
    previous = serializers.URLField(allow_null=True)
    total = serializers.IntegerField(help_text="Number of items that pass the filters.")
    unread = serializers.ListField(
        child=serializers.CharField(),
        help_text="Sources that could not be read, so their items are missing.",
    )
    results = AttentionItemShape(many=True)


class AttentionFilters(Filters):
    severity = serializers.ChoiceField(SEVERITIES, required=False)
    kind = serializers.CharField(required=False, max_length=60)
    team = serializers.CharField(required=False, max_length=60, help_text=TEAM_HELP)


class AttentionView(ApiView):
    read_scope = "switches:read"
    filters = AttentionFilters
    query_parameters = CursorPages.parameters

    @extend_schema(parameters=PAGE_PARAMETERS, responses=AttentionPageShape)
    def get(self, request: Request) -> Response:
        """List everything that waits for a person: most severe first, then oldest."""
        wanted = self.filters.parse(request.query_params)
        actor = actor_of(request)
        team_filter = parse_team_filter(actor, wanted.pop("team", ""))
        overview = services.read_all(db_now()).shown_to(actor.user_id)
        overview, _ = overview.split_by_team(team_filter)
        waiting = [
            one
            for one in overview.waiting
            if all(getattr(one, name) == value for name, value in wanted.items())
        ]
        shown = {
            "total": len(waiting),
            "unread": overview.unread,
            **paginate_list(waiting, request),
        }
        return Response(AttentionPageShape(shown).data)
