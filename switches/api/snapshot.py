"""API for signed-in browsers: the snapshot, and checks whether switches allow a call.

It reads the database; services use the data plane's endpoints instead.
"""

import random
from dataclasses import asdict

from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Now
from django.http import HttpResponse
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.core.clock import db_now
from controlplane.core.errors import Unavailable
from controlplane.core.http.views import ApiView
from controlplane.core.protocol import matches_etag
from switches.api.shapes import CheckBody, CheckResultShape, SnapshotShape
from switches.bucketing import BUCKETS
from switches.evaluate import evaluate, read_question
from switches.models import EmergencyOrder, Episode
from switches.models import Publication as PublicationRow
from switches.snapshot import LISTED, OrderIds, SnapshotEntry, SnapshotVersion, render

ATTEMPTS = 5
COLUMNS = (
    *("switch_id", "switch__scope", "switch__key", "allow_percent", "salt", "reason"),
    *("engaged_at", "expires_at", "on_expiry"),
)
"""The columns of :class:`SnapshotEntry`, in field order."""


def read_snapshot() -> tuple[SnapshotVersion, list[SnapshotEntry]]:
    """Return the version of the published snapshot, and every switch that is not released.

    If a change is published during the read, read again; after five attempts, raise
    :class:`Unavailable`.
    """

    def read_version() -> SnapshotVersion:
        row = PublicationRow.objects.get(pk=1)
        return SnapshotVersion(row.epoch, row.version, row.published_at)

    open_episodes = Episode.objects.filter(ended_at__isnull=True).values_list(*COLUMNS)
    for _ in range(ATTEMPTS):
        before = read_version()
        entries = [SnapshotEntry(*row) for row in open_episodes.all()]
        if read_version() == before:
            return before, entries
    raise Unavailable("Switches change faster than they can be read; try again.", retry_after=1)


def read_order_ids() -> OrderIds:
    """Return the ids of emergency orders that data planes stored."""
    withdrawals = EmergencyOrder.objects.filter(order_id=OuterRef("pk"), switch=OuterRef("switch"))
    orders = EmergencyOrder.objects.filter(
        Q(closed_at__isnull=True) | Q(closed_at__gt=Now() - LISTED),
        action=EmergencyOrder.Action.ENGAGE,
    )
    found = orders.order_by("pk").values_list(
        "pk", Q(closed_at__isnull=True) & ~Exists(withdrawals)
    )
    return OrderIds(
        tuple(str(pk) for pk, is_open in found if is_open),
        tuple(str(pk) for pk, is_open in found if not is_open),
    )


class SnapshotView(ApiView):
    read_scope = "switches:read"
    query_parameters = ("wait",)

    @extend_schema(
        parameters=[OpenApiParameter("If-None-Match", str, OpenApiParameter.HEADER)],
        responses={200: SnapshotShape, 304: OpenApiResponse(description="You have this version.")},
    )
    def get(self, request: Request) -> HttpResponse:
        """Return every switch that is not released, as canonical JSON."""
        publication, entries = read_snapshot()
        headers = {
            "ETag": publication.etag,
            "Cache-Control": "no-cache",
            "Switchgear-Version": str(publication.version),
            "Switchgear-Age": "0.0",
        }
        if_none_match = request.headers.get("If-None-Match", "")
        if matches_etag(if_none_match, publication.etag):
            return HttpResponse(status=304, headers=headers)
        body = render(publication, entries, read_order_ids())
        return HttpResponse(body, content_type="application/json", headers=headers)


class CheckView(ApiView):
    write_scope = "switches:read"  # POST because of its body; changes nothing.

    @extend_schema(request=CheckBody, responses=CheckResultShape)
    def post(self, request: Request) -> Response:
        """Return whether the switches allow a call, and the first switch that blocks it."""
        question = read_question(dict(request.data))
        publication, entries = read_snapshot()
        decision = evaluate(
            question,
            {entry.id: entry for entry in entries},
            now=db_now(),
            draw=lambda: random.randrange(BUCKETS),  # noqa: S311 - a share of traffic, no secret
        )
        return Response({**asdict(decision), "version": publication.version})
