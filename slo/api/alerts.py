"""The API of alerts: list, acknowledge, and draft a postmortem."""

from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.core.actors import Actor
from controlplane.core.clock import db_now
from controlplane.core.comments.api import CommentList
from controlplane.core.errors import NotFound
from controlplane.core.http.permissions import actor_of
from controlplane.core.http.views import ApiView, Done, ListView, mutation
from controlplane.core.team_filter import parse_team_filter
from slo import comment_kinds
from slo.alerts import lifecycle
from slo.models import Alert
from slo.postmortems import alert_timeline, draft

from .bodies import AcknowledgeAlertBody, AcknowledgeAlertsBody, AlertFilters
from .resources import (
    ONE_ALERT,
    AlertAcknowledgementShape,
    AlertsAcknowledgementShape,
    AlertShape,
    PostmortemShape,
)
from .slos import READ, WRITE, parse_id

COLUMN_BY_FILTER = {name: name for name in ("kind", "severity", "service")} | {"slo": "slo__name"}
RELATED = ("slo", "threshold")
CONDITION_BY_STATE = {
    "open": Q(resolved_at__isnull=True, acknowledged_at__isnull=True),
    "acknowledged": Q(resolved_at__isnull=True, acknowledged_at__isnull=False),
    "resolved": Q(resolved_at__isnull=False),
}


class AlertList(ListView[Alert]):
    """All alerts, the newest first."""

    queryset = Alert.objects.select_related(*RELATED)
    serializer_class = AlertShape
    filters = AlertFilters
    ordering = "-id"
    read_scope = READ

    def apply_filters(self, rows: QuerySet[Alert], filters: dict[str, Any]) -> QuerySet[Alert]:
        if "state" in filters:
            rows = rows.filter(CONDITION_BY_STATE[filters["state"]])
        for name in COLUMN_BY_FILTER.keys() & filters.keys():
            rows = rows.filter(**{COLUMN_BY_FILTER[name]: filters[name]})
        if "q" in filters:
            text = filters["q"]
            rows = rows.filter(Q(rule__icontains=text) | Q(subject__icontains=text))
        if "team" in filters:
            team = parse_team_filter(actor_of(self.request), filters["team"])
            rows = rows.filter(pk__in=Alert.objects.of_team(team).values("pk"))
        return rows


class AlertDetail(ApiView):
    path_parameters = ONE_ALERT
    read_scope = READ

    @extend_schema(responses=AlertShape)
    def get(self, request: Request, alert_id: str) -> Response:
        """One alert, with the figures at its opening and the figures when its rule last fired."""
        return Response(AlertShape.render(_find_alert(alert_id)))


class AcknowledgeAlertView(ApiView):
    path_parameters = ONE_ALERT
    write_scope = WRITE

    @extend_schema(request=AcknowledgeAlertBody, responses=AlertAcknowledgementShape)
    @mutation(AcknowledgeAlertBody)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime, alert_id: str) -> Done:
        """Acknowledge an alert, which pauses its escalation for 24 hours."""
        comment = body.get("comment", "")
        lifecycle.acknowledge_alert(
            alert_id=parse_id(alert_id), actor=actor, now=now, comment=comment
        )
        return Done(AlertShape.render(_find_alert(alert_id)))


class AcknowledgeAlertsView(ApiView):
    write_scope = WRITE

    @extend_schema(request=AcknowledgeAlertsBody, responses=AlertsAcknowledgementShape)
    @mutation(AcknowledgeAlertsBody)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime) -> Done:
        """Acknowledge several alerts, or all open ones of a group, in one step.

        Alerts that have resolved or are acknowledged stay as they are; the answer has the others.
        """
        alert_ids = body.get("alerts", [])
        if "group" in body:
            alert_ids = [one.pk for one in lifecycle.find_group(body["group"])]
        done = lifecycle.acknowledge_alerts(
            alert_ids=alert_ids, actor=actor, now=now, comment=body.get("comment", "")
        )
        ids = [one.pk for one in done]
        rows = Alert.objects.select_related(*RELATED).filter(pk__in=ids).order_by("pk")
        return Done({"results": [AlertShape.render(one) for one in rows]})


class AlertCommentsView(CommentList):
    path_parameters = ONE_ALERT
    read_scope = READ
    write_scope = WRITE
    kind = comment_kinds.KIND

    def find_key(self, **path: Any) -> str:
        return str(_find_alert(path["alert_id"]).pk)


class PostmortemView(ApiView):
    path_parameters = ONE_ALERT
    read_scope = READ

    @extend_schema(responses=PostmortemShape)
    def get(self, request: Request, alert_id: str) -> Response:
        """A postmortem draft in Markdown: timeline, people's actions, and error budget spent.

        The draft quotes the audit trail, so a token needs the scopes `slo:read` and
        `audit:read`. People of every role have both.
        """
        actor_of(request).require(alert_timeline.SCOPE)
        alert = _find_alert(alert_id)
        return Response({"alert": alert.pk, "markdown": draft.write_draft(alert, db_now())})


def _find_alert(alert_id: str) -> Alert:
    alert = Alert.objects.select_related(*RELATED).filter(pk=parse_id(alert_id)).first()
    if alert is None:
        raise NotFound(f"There is no alert {alert_id}.")
    return alert
