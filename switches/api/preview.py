"""Who would be hit: the blast radius of a switch, before it is engaged."""

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.core.clock import db_now
from controlplane.core.http.views import ApiView
from switches.api.shapes import ONE_SWITCH, PreviewShape
from switches.blast import blast
from switches.resources import blast_resource
from switches.services.register import identify


class PreviewView(ApiView):
    path_parameters = ONE_SWITCH
    read_scope = "switches:read"

    @extend_schema(responses=PreviewShape)
    def get(self, request: Request, scope: str, key: str) -> Response:
        """Who checks this switch and how often, and what else stops part of the same traffic."""
        return Response(blast_resource(blast(identify(scope, key), db_now())))
