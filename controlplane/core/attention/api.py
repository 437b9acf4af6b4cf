"""Attention items over HTTP."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.core.attention import services
from controlplane.core.canonical import timestamp
from controlplane.core.clock import db_now
from controlplane.core.http.fields import Filters
from controlplane.core.http.pagination import PAGE_PARAMETERS, CursorPages, paginate_list
from controlplane.core.http.views import ApiView
from controlplane.core.message_templates import SEVERITIES
from controlplane.core.page_registry import AttentionItem


class WaitingShape(serializers.Serializer[AttentionItem]):
    kind = serializers.CharField()
    severity = serializers.ChoiceField(SEVERITIES)
    title = serializers.CharField()
    detail = serializers.CharField()
    path = serializers.CharField(help_text="The page of the console to settle it on.")
    since = serializers.DateTimeField()
    due_at = serializers.DateTimeField(
        allow_null=True, help_text="When it gets worse by itself, if it does."
    )

    def to_representation(self, waiting: AttentionItem) -> dict[str, Any]:
        return {
            "kind": waiting.kind,
            "severity": waiting.severity,
            "title": waiting.title,
            "detail": waiting.detail,
            "path": waiting.path,
            "since": timestamp(waiting.since),
            "due_at": timestamp(waiting.due_at) if waiting.due_at else None,
        }


class AttentionShape(serializers.Serializer[Any]):
    next = serializers.URLField(allow_null=True)
    previous = serializers.URLField(allow_null=True)
    total = serializers.IntegerField(help_text="All that waits, and passes the filters.")
    unread = serializers.ListField(
        child=serializers.CharField(), help_text="What could not be read: there may be more."
    )
    results = WaitingShape(many=True)


class AttentionFilters(Filters):
    severity = serializers.ChoiceField(SEVERITIES, required=False)
    kind = serializers.CharField(required=False, max_length=60)


class AttentionView(ApiView):
    read_scope = "switches:read"
    filters = AttentionFilters
    query_parameters = CursorPages.parameters

    @extend_schema(parameters=PAGE_PARAMETERS, responses=AttentionShape)
    def get(self, request: Request) -> Response:
        """Everything that waits for a person: the worst first, then the longest waiting."""
        wanted = self.filters.parse(request.query_params)
        overview = services.read_all(db_now())
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
        return Response(AttentionShape(shown).data)
