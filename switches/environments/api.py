"""API of the installation's state, which consoles of other environments read."""

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.core.clock import db_now
from controlplane.core.http.resources import PercentField, Resource, TimestampField
from controlplane.core.http.views import ApiView

from .state import MAX_SWITCHES, EnvironmentState, StoppedSwitch, load_state


class StoppedSwitchShape(Resource[StoppedSwitch]):
    id = serializers.CharField()
    allow_percent = PercentField()
    reason = serializers.CharField()
    engaged_at = TimestampField()
    is_overdue = serializers.BooleanField()


class EnvironmentShape(Resource[EnvironmentState]):
    environment = serializers.CharField()
    release = serializers.CharField()
    read_at = TimestampField(help_text="By the clock of the database.")
    version = serializers.IntegerField(help_text="The version of the published snapshot.")
    published_at = TimestampField()
    degradation_level = serializers.IntegerField(min_value=0, max_value=3)
    attention = serializers.IntegerField(
        allow_null=True, help_text="Items under *Needs attention*; null if some can't be read."
    )
    stopped = serializers.IntegerField(help_text="The number of switches that are not released.")
    overdue = serializers.IntegerField()
    switches = StoppedSwitchShape(
        many=True, help_text=f"The first {MAX_SWITCHES} that are not released, by id."
    )


class EnvironmentView(ApiView):
    read_scope = "switches:read"

    @extend_schema(responses=EnvironmentShape)
    def get(self, request: Request) -> Response:
        """Return a summary of this installation, for consoles of other environments."""
        return Response(EnvironmentShape(load_state(db_now())).data)
