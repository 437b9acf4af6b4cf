"""The API of exclusions: time spans that do not count for an SLO."""

from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema

from controlplane.core.actors import Actor
from controlplane.core.errors import NotFound
from controlplane.core.http.views import ApiView, Done, ListView, mutation
from slo.api import resources
from slo.models import Exclusion
from slo.objectives import exclusions, services

from .bodies import ExclusionBody, ExclusionFilters, ExclusionRemovalBody
from .resources import ONE_EXCLUSION, ONE_SLO, ExclusionShape, OutcomeShape
from .slos import READ, WRITE

MAX_ID_DIGITS = 18


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

    @extend_schema(request=ExclusionBody, responses={201: OutcomeShape})
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

    @extend_schema(request=ExclusionRemovalBody, responses={200: OutcomeShape})
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
        raise NotFound("There is nothing of that number here.")
    return int(text)
