"""How the installation itself is, over the API: for people who are signed in.

Programs are told by the data plane, in the same words.
"""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.core import health
from controlplane.core.degradation import levels
from controlplane.core.http.views import ApiView


class DegradationShape(serializers.Serializer[Any]):
    level = serializers.IntegerField(min_value=0, max_value=3)
    name = serializers.ChoiceField(levels.NAMES)
    causes = serializers.ListField(child=serializers.CharField())


class DegradationView(ApiView):
    read_scope = "switches:read"

    @extend_schema(responses=DegradationShape)
    def get(self, request: Request) -> Response:
        """How far this installation has degraded. A token may have breakers:read instead."""
        # Who got here was looked up in the database.
        return Response(levels.picture(True, health.redis_answers()))
