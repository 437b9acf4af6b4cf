"""Who would be hit: the blast radius of a switch, before it is engaged."""

from dataclasses import replace

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.core.clock import db_now
from controlplane.core.http.views import ApiView
from controlplane.core.page_registry import PREVIEW_FIELDS
from switches.api.shapes import ONE_SWITCH, PreviewShape
from switches.blast import blast, refused
from switches.resources import blast_resource
from switches.services.register import identify


class PreviewView(ApiView):
    path_parameters = ONE_SWITCH
    read_scope = "switches:read"

    @extend_schema(responses=PreviewShape)
    def get(self, request: Request, scope: str, key: str) -> Response:
        """Who checks this switch and how often, and what else stops part of the same traffic."""
        switch_id, now = identify(scope, key), db_now()
        found = replace(blast(switch_id, now), refusals=refused(switch_id))
        told = [read(switch_id, now) for read in PREVIEW_FIELDS.functions()]
        more = {field: value for fields in told for field, value in fields.items()}
        return Response({**more, **blast_resource(found)})
