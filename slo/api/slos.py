"""The API of SLOs: documents, status, series, backtests and exclusions."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.core import team_filter
from controlplane.core.actors import Actor
from controlplane.core.clock import db_now
from controlplane.core.errors import InvalidInput, NotFound
from controlplane.core.http.permissions import actor_of
from controlplane.core.http.views import ApiView, ColumnListView, Done, ListView, mutation
from slo.api import resources
from slo.arithmetic.minutes import end_of
from slo.backtests import history
from slo.backtests.replay import limit_backtests
from slo.evaluation.evaluator import load_status
from slo.models import Exclusion, Slo
from slo.objectives import exclusions, services
from slo.objectives.permissions import require_edit

from .bodies import (
    BacktestBody,
    ExclusionBody,
    ExclusionFilters,
    ExclusionRemovalBody,
    NewSloBody,
    SeriesFilters,
    SloBody,
    SloFilters,
    SloRemovalBody,
    StatusFilters,
)
from .resources import (
    ONE_EXCLUSION,
    ONE_SLO,
    BacktestShape,
    ExclusionShape,
    SavedExclusionShape,
    SavedSloShape,
    SeriesShape,
    SloShape,
    SloStatusShape,
)

READ, WRITE = "slo:read", "slo:write"
MAX_ID_DIGITS = 18


class SloList(ColumnListView[Slo]):
    """All SLOs, in order of name."""

    queryset = Slo.objects.present()
    serializer_class = SloShape
    filters = SloFilters
    ordering = "name"
    columns = resources.COLUMNS
    uncached_filters = frozenset({team_filter.PARAMETER})
    read_scope = READ
    write_scope = WRITE

    def apply_filters(self, rows: QuerySet[Slo], filters: dict[str, Any]) -> QuerySet[Slo]:
        for column in ("service", "kind"):
            if column in filters:
                rows = rows.filter(**{column: filters[column]})
        if "state" in filters:
            in_state = Q(status__state=filters["state"])
            if filters["state"] == "unknown":  # Also an SLO that was never evaluated.
                in_state |= Q(status__isnull=True)
            rows = rows.filter(in_state)
        if "q" in filters:
            columns = ("name", "service", "owner", "description")
            matches = ((f"{column}__icontains", filters["q"]) for column in columns)
            rows = rows.filter(Q(*matches, _connector=Q.OR))
        if "team" in filters:
            team = team_filter.parse_team_filter(actor_of(self.request), filters["team"])
            rows = rows.filter(pk__in=Slo.objects.present().of_team(team).values("pk"))
        return rows

    def present(self, rows: Sequence[tuple[Any, ...]]) -> list[dict[str, Any]]:
        return [resources.serialize_row(row) for row in rows]

    @extend_schema(request=NewSloBody, responses={201: SavedSloShape})
    @mutation(NewSloBody)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime) -> Done:
        """Create an SLO. It is evaluated from the next minute on."""
        name = body.pop("name")
        require_edit(actor, name)
        services.require_new(name)
        return _write(name, body, actor, now)


class SloDetail(ApiView):
    path_parameters = ONE_SLO
    read_scope = READ
    write_scope = WRITE

    @extend_schema(responses=SloShape)
    def get(self, request: Request, name: str) -> Response:
        """One SLO with its stored status."""
        return Response(resources.slo_resource(services.find_slo(name)))

    @extend_schema(request=SloBody, responses={200: SavedSloShape, 201: SavedSloShape})
    @mutation(SloBody)
    def put(self, *, body: dict[str, Any], actor: Actor, now: datetime, name: str) -> Done:
        """Create an SLO, or replace it.

        The counters of a replaced SLO stay, and are evaluated with the new objective.
        """
        return _write(name, body, actor, now)

    @extend_schema(request=SloRemovalBody, responses={200: SavedSloShape})
    @mutation(SloRemovalBody)
    def delete(self, *, body: dict[str, Any], actor: Actor, now: datetime, name: str) -> Done:
        """Remove an SLO and resolve its alerts. A new SLO of this name starts without history."""
        reason = body.get("reason", "")
        removed = services.remove_slo(name=name, reason=reason, actor=actor, now=now)
        return Done(resources.slo_resource(removed))


class StatusView(ApiView):
    path_parameters = ONE_SLO
    filters = StatusFilters
    read_scope = READ

    @extend_schema(responses=SloStatusShape)
    def get(self, request: Request, name: str) -> Response:
        """The status of an SLO now, or at the time `at`, computed from its counters."""
        at = self.filters.parse(request.query_params).get("at")
        slo = services.find_slo(name)
        if at is not None and at > db_now():
            raise InvalidInput(
                {"at": ["Must not be in the future; leave it out for the current time."]}
            )
        if at is not None and at < end_of(0):
            raise InvalidInput({"at": ["Must not be before 1970."]})
        return Response(load_status(slo, at))


class SeriesView(ApiView):
    path_parameters = ONE_SLO
    filters = SeriesFilters
    read_scope = READ

    @extend_schema(responses=SeriesShape)
    def get(self, request: Request, name: str) -> Response:
        """The status of an SLO at regular steps between two times, by default over the last day."""
        parameters = self.filters.parse(request.query_params)
        slo = services.find_slo(name)
        since, until, step = (parameters.get(one) for one in ("from", "to", "step"))
        return Response(history.load_series(slo, since=since, until=until, step=step, now=db_now()))


class BacktestView(ApiView):
    path_parameters = ONE_SLO
    write_scope = READ  # It changes nothing.

    @extend_schema(request=BacktestBody, responses=BacktestShape)
    @mutation(BacktestBody)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime, name: str) -> Done:
        """The alerts that the SLO's rules, or the rules in the body, would have opened.

        Nothing is changed, and nobody is notified.
        """
        slo = services.find_slo(name)
        replacements = {field: body[field] for field in history.REPLACEABLE if field in body}
        with limit_backtests(actor):
            result = history.run_backtest(
                slo,
                start=body["start"],
                end=body.get("end"),
                step=body.get("step"),
                instead=replacements,
                each=body.get("ticks", False),
                now=now,
            )
        return Done(result)


class ExclusionList(ListView[Exclusion]):
    """The exclusions of an SLO, the newest first."""

    path_parameters = ONE_SLO
    queryset = Exclusion.objects.all()
    serializer_class = ExclusionShape
    filters = ExclusionFilters
    ordering = "-id"
    read_scope = READ
    write_scope = WRITE

    def apply_filters(
        self, rows: QuerySet[Exclusion], filters: dict[str, Any]
    ) -> QuerySet[Exclusion]:
        rows = rows.filter(slo=services.find_slo(self.kwargs["name"]))
        return rows if filters["removed"] else rows.filter(removed_at__isnull=True)

    @extend_schema(request=ExclusionBody, responses={201: SavedExclusionShape})
    @mutation(ExclusionBody)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime, name: str) -> Done:
        """Exclude a time span, past or future.

        The response has the budget before and after, also in a dry run.
        """
        done = exclusions.add_exclusion(name=name, actor=actor, now=now, **body)
        return Done(resources.outcome_resource(done), status=201)


class ExclusionDetail(ApiView):
    path_parameters = ONE_EXCLUSION
    write_scope = WRITE

    @extend_schema(request=ExclusionRemovalBody, responses={200: SavedExclusionShape})
    @mutation(ExclusionRemovalBody)
    def delete(
        self, *, body: dict[str, Any], actor: Actor, now: datetime, name: str, exclusion_id: str
    ) -> Done:
        """Remove an exclusion, so that its time span counts again."""
        done = exclusions.remove_exclusion(
            name=name,
            exclusion_id=parse_id(exclusion_id),
            reason=body.get("reason", ""),
            actor=actor,
            now=now,
        )
        return Done(resources.outcome_resource(done))


def parse_id(text: str) -> int:
    """Return the id in a URL path. Raise :class:`NotFound` unless it has 1 to 18 digits."""
    if not (text.isascii() and text.isdigit() and len(text) <= MAX_ID_DIGITS):
        raise NotFound("There is no object with this number.")
    return int(text)


def _write(name: str, body: dict[str, Any], actor: Actor, now: datetime) -> Done:
    reason = body.pop("reason", "")
    slo = services.put_slo(name=name, fields=body, reason=reason, actor=actor, now=now)
    return Done(resources.slo_resource(slo), status=201 if slo.created_at == now else 200)
