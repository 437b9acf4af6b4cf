"""REST API of a switch's blast radius."""

from dataclasses import replace

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.core.clock import db_now
from controlplane.core.http.views import ApiView
from controlplane.core.page_registry import PREVIEW_FIELDS
from switches.api.shapes import ONE_SWITCH, PreviewShape
from switches.blast import blast_radius, current_refusals
from switches.resources import blast_resource
from switches.services.registration import identify


class PreviewView(ApiView):
    path_parameters = ONE_SWITCH
    read_scope = "switches:read"

    @extend_schema(responses=PreviewShape)
    def get(self, request: Request, scope: str, key: str) -> Response:
        """Return the callers of this switch with their rates, and overlapping switches."""
        switch_id, now = identify(scope, key), db_now()
        found = replace(blast_radius(switch_id, now), refusals=current_refusals(switch_id))
        previews = [read(switch_id, now) for read in PREVIEW_FIELDS.functions()]
        more = {field: value for fields in previews for field, value in fields.items()}
        return Response({**more, **blast_resource(found)})
