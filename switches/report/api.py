"""REST API of weekly reports."""

from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.core.actors import Actor
from controlplane.core.clock import db_now
from controlplane.core.http.fields import MutationBody, Text
from controlplane.core.http.openapi import BY_SESSION
from controlplane.core.http.views import ApiView, Done, ListView, mutation
from switches.models import WeeklyReport
from switches.report import queries, services
from switches.report.resources import FullReportShape, ReportShape

ONE_WEEK = (OpenApiParameter("week", str, OpenApiParameter.PATH, pattern="^[0-9]{4}-W[0-9]{2}$"),)


class SignBody(MutationBody):
    comment = Text(required=False, max_length=services.MAX_COMMENT_LENGTH)
    anchor_id = serializers.IntegerField(
        required=False,
        help_text="`anchor.id` of the report you read; 409 if it was generated again since.",
    )


class ReportList(ListView[WeeklyReport]):
    """Saved reports, the newest week first."""

    queryset: QuerySet[WeeklyReport] = WeeklyReport.objects.defer("content")
    serializer_class = ReportShape
    ordering = "-week"
    read_scope = "reports:read"


class ReportDetail(ApiView):
    path_parameters = ONE_WEEK
    read_scope = "reports:read"
    http_method_names = ["get", "head"]

    @extend_schema(responses=FullReportShape)
    def get(self, request: Request, week: str) -> Response:
        """Return a report. An unsaved report of the running week is composed as of now."""
        return Response(FullReportShape.render(queries.find_report(week, db_now())))


class SignView(ApiView):
    path_parameters = ONE_WEEK
    write_scope = "reports:read"  # `services.sign` checks the power to sign.
    http_method_names = ["post"]

    @extend_schema(request=SignBody, responses=ReportShape, auth=BY_SESSION)
    @mutation(SignBody)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime, week: str) -> Done:
        """Sign a saved report. Requires a signed-in approver, not a token.

        A report that is generated again loses its signature.
        """
        read = {"comment": body.get("comment", ""), "anchor_id": body.get("anchor_id")}
        signed = services.sign_report(week=queries.parse_week(week), **read, actor=actor, now=now)
        return Done(ReportShape.render(signed))
