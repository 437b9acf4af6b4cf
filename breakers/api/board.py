"""API views of breaker states and their history."""

from datetime import timedelta
from typing import Any

from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from breakers import resources
from breakers.api.bodies import BreakerFilters, HistoryFilters
from breakers.api.registry import READ, filter_dependencies
from breakers.api.shapes import ONE_DEPENDENCY, BreakerRowShape, TransitionShape
from breakers.counts import COUNTERS
from breakers.models import Dependency, Minute, Transition
from breakers.services import registry
from breakers.states import dependency_status
from breakers.states.history import WORST
from controlplane.core.canonical import timestamp
from controlplane.core.clock import db_now
from controlplane.core.http.permissions import actor_of
from controlplane.core.http.views import ListView

DEFAULT_MINUTES = 60


class BreakerListShape(serializers.ListSerializer[Any]):
    def to_representation(self, data: Any) -> Any:
        # All dependencies of the page at once: their breakers are read by three queries.
        now = db_now()
        return resources.breaker_resources(dependency_status.load_statuses(list(data), now), now)


class BreakerShape(BreakerRowShape):
    class Meta:
        list_serializer_class = BreakerListShape


class BreakerList(ListView[Dependency]):
    """List dependencies with the states of their breakers and their live overrides."""

    queryset = Dependency.objects.registered()
    serializer_class = BreakerShape
    filters = BreakerFilters
    ordering = "id"
    read_scope = READ
    http_method_names = ["get", "head"]

    def apply_filters(
        self, rows: QuerySet[Dependency], filters: dict[str, Any]
    ) -> QuerySet[Dependency]:
        rows = filter_dependencies(rows, filters, actor_of(self.request))
        if "state" in filters:
            rows = dependency_status.filter_by_state(rows, filters["state"], db_now())
        return rows


class HistoryView(ListView[Transition]):
    """List a dependency's breaker transitions, last reported first, and recent counts by minute."""

    queryset = Transition.objects.all()
    serializer_class = TransitionShape
    path_parameters = ONE_DEPENDENCY
    filters = HistoryFilters
    ordering = "-id"
    read_scope = READ
    http_method_names = ["get", "head"]

    def apply_filters(
        self, rows: QuerySet[Transition], filters: dict[str, Any]
    ) -> QuerySet[Transition]:
        self._dependency = registry.find_dependency(self.kwargs["caller"], self.kwargs["callee"])
        self._minutes = filters.get("minutes", DEFAULT_MINUTES)
        return rows.filter(dependency=self._dependency)

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        response = super().list(request, *args, **kwargs)
        first = db_now() - timedelta(minutes=self._minutes)
        rows = Minute.objects.filter(dependency=self._dependency, minute__gte=first)
        response.data["minutes"] = [
            {
                "minute": timestamp(row.minute),
                "worst": WORST[row.worst],
                "open": row.open,
                "half_open": row.half_open,
                "instances": row.instances,
                "counters": {name: getattr(row, name) for name in COUNTERS},
            }
            for row in rows.order_by("minute")
        ]
        return response
