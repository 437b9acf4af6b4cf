"""API views of dependencies and of their overrides."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db.models import FilteredRelation, Q, QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from breakers import names, resources
from breakers.api.bodies import (
    DependencyFilters,
    NewDependencyBody,
    OverrideBody,
    OverrideUndoBody,
    PutDependencyBody,
    RemovalBody,
)
from breakers.api.shapes import ONE_DEPENDENCY, DependencyShape, SavedDependencyShape
from breakers.models import Dependency
from breakers.resources import SavedOverrideShape
from breakers.services import override_undo, overrides, registry
from breakers.services.permissions import require_edit
from controlplane.core import team_filter
from controlplane.core.actors import Actor
from controlplane.core.clock import db_now
from controlplane.core.errors import InvalidInput
from controlplane.core.http.permissions import actor_of
from controlplane.core.http.views import ApiView, ColumnListView, Done, mutation

READ, WRITE = "breakers:read", "breakers:write"


class DependencyList(ColumnListView[Dependency]):
    """List the dependencies that are registered or that instances report."""

    queryset = Dependency.objects.registered().annotate(
        live_override=FilteredRelation("overrides", condition=Q(overrides__ended_at=None))
    )
    serializer_class = DependencyShape
    filters = DependencyFilters
    ordering = "id"
    columns = resources.COLUMNS
    uncached_filters = frozenset({team_filter.PARAMETER})
    read_scope = READ
    write_scope = WRITE

    def apply_filters(
        self, rows: QuerySet[Dependency], filters: dict[str, Any]
    ) -> QuerySet[Dependency]:
        return filter_dependencies(rows, filters, actor_of(self.request))

    def present(self, rows: Sequence[tuple[Any, ...]]) -> list[dict[str, Any]]:
        return resources.serialize_rows(rows)

    @extend_schema(request=NewDependencyBody, responses={201: SavedDependencyShape})
    @mutation(NewDependencyBody)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime) -> Done:
        """Register a dependency that is not registered yet."""
        caller, callee = body.pop("caller"), body.pop("callee")
        registry.require_names(caller, callee)
        require_edit(actor, names.dependency_resource(caller, callee))
        registry.require_new(caller, callee)
        return _put_dependency(caller, callee, body, actor, now)


class DependencyDetail(ApiView):
    path_parameters = ONE_DEPENDENCY
    read_scope = READ
    write_scope = WRITE

    @extend_schema(responses=DependencyShape)
    def get(self, request: Request, caller: str, callee: str) -> Response:
        """Return one dependency with its policy and its override."""
        dependency = registry.find_dependency(caller, callee)
        return Response(resources.dependency_resource(dependency, db_now()))

    @extend_schema(
        request=PutDependencyBody, responses={200: SavedDependencyShape, 201: SavedDependencyShape}
    )
    @mutation(PutDependencyBody)
    def put(
        self, *, body: dict[str, Any], actor: Actor, now: datetime, caller: str, callee: str
    ) -> Done:
        """Register the dependency, or replace its whole policy.

        Services are notified immediately.
        """
        for name, addressed in (("caller", caller), ("callee", callee)):
            if body.pop(name, addressed) != addressed:
                raise InvalidInput({name: [f"Must equal {addressed}, the value in the path."]})
        return _put_dependency(caller, callee, body, actor, now)

    @extend_schema(request=RemovalBody, responses={200: SavedDependencyShape})
    @mutation(RemovalBody)
    def delete(
        self, *, body: dict[str, Any], actor: Actor, now: datetime, caller: str, callee: str
    ) -> Done:
        """Remove the dependency and end its override. Services use their own defaults again."""
        removed = registry.remove_dependency(
            caller=caller, callee=callee, reason=body.get("reason", ""), actor=actor, now=now
        )
        return Done(resources.dependency_resource(removed, now))


class OverrideView(ApiView):
    path_parameters = ONE_DEPENDENCY
    write_scope = WRITE

    @extend_schema(request=OverrideBody, responses=SavedOverrideShape)
    @mutation(OverrideBody)
    def put(
        self, *, body: dict[str, Any], actor: Actor, now: datetime, caller: str, callee: str
    ) -> Done:
        """Force a mode upon the breakers of all instances until the override expires.

        Each instance applies the mode with its next report. Repeat the request to see how many
        have done so (`acknowledged.applied`).
        """
        fields = {"expires_in": None, **body}
        override = overrides.set_override(
            caller=caller, callee=callee, actor=actor, now=now, **fields
        )
        return Done(resources.override_result(override.dependency, override, now))

    @extend_schema(request=RemovalBody, responses={200: SavedOverrideShape})
    @mutation(RemovalBody)
    def delete(
        self, *, body: dict[str, Any], actor: Actor, now: datetime, caller: str, callee: str
    ) -> Done:
        """End the override. The dependency's breakers are reset: closed, with an empty window."""
        ended = overrides.remove_override(
            caller=caller, callee=callee, reason=body.get("reason", ""), actor=actor, now=now
        )
        dependency = registry.find_dependency(caller, callee)
        return Done(resources.override_result(dependency, ended, now, version=dependency.version))


class OverrideUndoView(ApiView):
    path_parameters = ONE_DEPENDENCY
    write_scope = WRITE

    @extend_schema(request=OverrideUndoBody, responses={200: SavedDependencyShape})
    @mutation(OverrideUndoBody)
    def post(
        self, *, body: dict[str, Any], actor: Actor, now: datetime, caller: str, callee: str
    ) -> Done:
        """Undo your own override within 30 seconds, if the dependency hasn't changed since.

        The override that it replaced applies again, unless that has expired; see `override` in the
        response. A reset can't be undone.
        """
        override_undo.undo_override(caller=caller, callee=callee, actor=actor, now=now)
        dependency = registry.find_dependency(caller, callee)
        return Done(resources.dependency_resource(dependency, now))


def filter_dependencies(
    rows: QuerySet[Dependency], filters: dict[str, Any], actor: Actor
) -> QuerySet[Dependency]:
    """Return the dependencies that match the filters; `q` is text in caller, callee or owner."""
    for column in ("caller", "callee", "criticality"):
        if column in filters:
            rows = rows.filter(**{column: filters[column]})
    if "q" in filters:
        text = filters["q"]
        rows = rows.filter(
            Q(caller__icontains=text) | Q(callee__icontains=text) | Q(owner__icontains=text)
        )
    if "team" in filters:
        team = team_filter.parse_team_filter(actor, filters["team"])
        rows = rows.filter(pk__in=Dependency.objects.registered().of_team(team).values("pk"))
    return rows


def _put_dependency(
    caller: str, callee: str, body: dict[str, Any], actor: Actor, now: datetime
) -> Done:
    reason = body.pop("reason", "")
    dependency = registry.put_dependency(
        caller=caller, callee=callee, fields=body, reason=reason, actor=actor, now=now
    )
    status = 201 if dependency.registered_at == now else 200
    return Done(resources.dependency_resource(dependency, now), status=status)
