"""API views of services and event channels."""

from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from breakers import names
from breakers.models import Channel, Service
from breakers.services import catalog
from breakers.services.permissions import require_edit
from controlplane.core.actors import Actor
from controlplane.core.errors import NotFound
from controlplane.core.http.views import ApiView, Done, ListView, mutation

from .bodies import NewServiceBody, ServiceBody, ServiceFilters
from .registry import READ, WRITE
from .shapes import ONE_SERVICE, ChannelShape, ListedServiceShape, ServiceShape


class ServiceList(ListView[Service]):
    """List the registered services, workers, clients, stores and external services."""

    queryset = Service.objects.all()
    serializer_class = ListedServiceShape
    filters = ServiceFilters
    ordering = "slug"
    read_scope = READ
    write_scope = WRITE

    def apply_filters(self, rows: QuerySet[Service], filters: dict[str, Any]) -> QuerySet[Service]:
        if "kind" in filters:
            rows = rows.filter(kind=filters["kind"])
        if "q" in filters:
            text = filters["q"]
            rows = rows.filter(
                Q(slug__icontains=text) | Q(name__icontains=text) | Q(owner__icontains=text)
            )
        return rows

    @extend_schema(request=NewServiceBody, responses={201: ServiceShape})
    @mutation(NewServiceBody)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime) -> Done:
        """Register a service that is not registered yet."""
        slug = body.pop("slug")
        require_edit(actor, names.service_resource(slug))
        catalog.require_new(slug)
        row = catalog.put_service(slug=slug, fields=body, actor=actor, now=now)
        return Done(ServiceShape.render(row), status=201)


class ServiceDetail(ApiView):
    path_parameters = ONE_SERVICE
    read_scope = READ
    write_scope = WRITE

    @extend_schema(responses=ServiceShape)
    def get(self, request: Request, slug: str) -> Response:
        """Return one service and the impact of its loss."""
        row = Service.objects.filter(pk=slug.replace("\x00", "")).first()
        if row is None:
            raise NotFound("This service doesn't exist. Use PUT to register it.")
        return Response(ServiceShape.render(row))

    @extend_schema(request=ServiceBody, responses={200: ServiceShape, 201: ServiceShape})
    @mutation(ServiceBody)
    def put(self, *, body: dict[str, Any], actor: Actor, now: datetime, slug: str) -> Done:
        """Register the service, or replace all its fields."""
        is_new = not catalog.is_known(slug)
        row = catalog.put_service(slug=slug, fields=body, actor=actor, now=now)
        return Done(ServiceShape.render(row), status=201 if is_new else 200)


class ChannelList(ListView[Channel]):
    """List the streams and sockets over which services communicate, sorted by name."""

    queryset = Channel.objects.all()
    serializer_class = ChannelShape
    ordering = "name"
    read_scope = READ
    http_method_names = ["get", "head"]
