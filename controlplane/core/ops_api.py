"""API of the installation's degradation; the data plane serves the same document, too."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.core.http.views import ApiView

from . import degradation_levels as levels
from .degradation import services


class DegradationEffectShape(serializers.Serializer[Any]):
    level = serializers.IntegerField(min_value=1, max_value=3)
    what = serializers.CharField(help_text="The failing component: `postgresql`, `core->oracle`.")
    since = serializers.CharField(help_text="RFC 3339; empty if unknown.")
    fails = serializers.ListField(child=serializers.CharField())
    works = serializers.ListField(child=serializers.CharField())


class DegradationShape(serializers.Serializer[Any]):
    level = serializers.IntegerField(min_value=0, max_value=3)
    name = serializers.ChoiceField(levels.NAMES)
    causes = serializers.ListField(child=serializers.CharField())
    effects = DegradationEffectShape(
        many=True, help_text="Effects of each cause, in the order of `causes`."
    )


class HasReadScope(BasePermission):
    """Permission for actors with the scope `switches:read` or `breakers:read`."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        actor = getattr(request, "actor", None)
        if actor is None:
            return False
        if not actor.may("breakers:read") and request.method in view.allowed_methods:
            actor.require("switches:read")
        return True


class DegradationView(ApiView):
    permission_classes = [HasReadScope]

    @extend_schema(responses=DegradationShape)
    def get(self, request: Request) -> Response:
        """Return the installation's degradation; scope `switches:read` or `breakers:read`."""
        return Response(services.load_document())
