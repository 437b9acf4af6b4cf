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
from controlplane.core.http.fields import EmptyBody, Filters, Text
from controlplane.core.http.openapi import BY_SESSION
from controlplane.core.http.resources import OptionalTextField, Resource, TimestampField
from controlplane.core.http.views import ApiView, Done, ListView, mutation
from switches.models import WeeklyReport, WeekReport
from switches.report import compose, services

ONE_WEEK = (OpenApiParameter("week", str, OpenApiParameter.PATH, pattern="^[0-9]{4}-W[0-9]{2}$"),)


ONE_TEAM = (*ONE_WEEK, OpenApiParameter("team", str, OpenApiParameter.PATH))


class AnchorShape(Resource[WeekReport]):
    id = serializers.IntegerField(
        source="anchor_id", help_text="Id of the audit row written with the report."
    )
    hash = serializers.CharField(source="anchor_hash")

    def to_representation(self, report: WeekReport) -> Any:
        return None if report.anchor_id is None else super().to_representation(report)


class WeeklyReportShape(Resource[WeekReport]):
    week = serializers.CharField(help_text="ISO week such as 2026-W47.")
    team = serializers.CharField(
        help_text="Slug of the team that it is for; empty for the report about everything."
    )
    starts_at = TimestampField()
    ends_at = TimestampField(help_text="Start of the next week.")
    generated_at = TimestampField()
    final = serializers.BooleanField(help_text="False until the week has ended.")
    anchor = AnchorShape(source="*", allow_null=True, help_text="Null if the report is not saved.")
    sent_at = TimestampField(allow_null=True)
    signed_at = TimestampField(allow_null=True)
    signed_by = OptionalTextField()
    comment = serializers.CharField()


class ReportChartShape(serializers.Serializer[Any]):
    title = serializers.CharField()
    unit = serializers.CharField()
    alt = serializers.CharField()
    bars = serializers.ListField(
        child=serializers.ListField(child=serializers.JSONField()),
        help_text="Pairs of a label and a number; null for days to come.",
    )


class ReportRowShape(serializers.Serializer[Any]):
    cells = serializers.DictField(
        child=serializers.JSONField(),
        help_text="Values by column; `…_at` are times, `…_seconds` durations.",
    )
    path = serializers.CharField(help_text="Path of the console page.")


class ReportSectionShape(serializers.Serializer[Any]):
    slug = serializers.CharField()
    title = serializers.CharField()
    summary = serializers.CharField()
    headline = serializers.CharField(
        required=False, help_text="What needs attention; missing in older reports."
    )
    tone = serializers.ChoiceField(compose.WORST_FIRST)
    columns = serializers.ListField(child=serializers.CharField())
    rows = ReportRowShape(many=True)
    total = serializers.IntegerField(help_text="Number of all rows; `rows` lists the first.")
    charts = ReportChartShape(many=True)
    unread = serializers.BooleanField(help_text="True if the section could not be read.")

    def to_representation(self, section: Any) -> Any:
        return section  # Stored as JSON; an older report may lack keys.


class WeeklyReportDetailShape(WeeklyReportShape):
    time_zone = serializers.CharField(source="content.time_zone")
    environment = serializers.CharField(source="content.environment")
    sections = ReportSectionShape(source="content.sections", many=True)


class SignBody(EmptyBody):
    comment = Text(required=False, max_length=services.MAX_COMMENT_LENGTH)
    anchor_id = serializers.IntegerField(
        required=False,
        help_text="`anchor.id` of the report you read; 409 if it was generated again since.",
    )


class ReportFilters(Filters):
    team = serializers.CharField(
        required=False,
        max_length=40,
        help_text="Slug of a team, for its reports instead of those about everything.",
    )


class ReportList(ListView[Any]):
    """Saved reports, the newest week first."""

    queryset: QuerySet[Any] = WeeklyReport.objects.defer("content")
    serializer_class = WeeklyReportShape
    filters = ReportFilters
    ordering = "-week"
    read_scope = "reports:read"

    def apply_filters(self, rows: QuerySet[Any], filters: dict[str, Any]) -> QuerySet[Any]:
        if "team" not in filters:
            return rows
        return compose.select_reports(filters["team"]).defer("content")


class ReportDetail(ApiView):
    path_parameters = ONE_WEEK
    read_scope = "reports:read"

    @extend_schema(responses=WeeklyReportDetailShape)
    def get(self, request: Request, week: str) -> Response:
        """Return a report. An unsaved report of the running week is composed as of now."""
        return Response(WeeklyReportDetailShape.render(compose.find_report(week, db_now())))


class TeamReportDetail(ApiView):
    path_parameters = ONE_TEAM
    read_scope = "reports:read"

    @extend_schema(responses=WeeklyReportDetailShape)
    def get(self, request: Request, week: str, team: str) -> Response:
        """Return the report of a team: only what it, and the teams below it, own."""
        return Response(WeeklyReportDetailShape.render(compose.find_report(week, db_now(), team)))


class SignView(ApiView):
    path_parameters = ONE_WEEK
    write_scope = "reports:read"  # `services.sign` checks the power to sign.

    @extend_schema(request=SignBody, responses=WeeklyReportShape, auth=BY_SESSION)
    @mutation(SignBody)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime, week: str) -> Done:
        """Sign a saved report. Requires a signed-in approver, not a token.

        A report that is generated again loses its signature.
        """
        return _sign(week, "", body, actor, now)


class TeamSignView(ApiView):
    path_parameters = ONE_TEAM
    write_scope = "reports:read"  # `services.sign` checks who may sign.

    @extend_schema(request=SignBody, responses=WeeklyReportShape, auth=BY_SESSION)
    @mutation(SignBody)
    def post(
        self, *, body: dict[str, Any], actor: Actor, now: datetime, week: str, team: str
    ) -> Done:
        """Sign a team's saved report.

        Requires the person on call for the team, or a lead or approver of it or of a team above.
        """
        return _sign(week, team, body, actor, now)


def _sign(week: str, team: str, body: dict[str, Any], actor: Actor, now: datetime) -> Done:
    read = {"comment": body.get("comment", ""), "anchor_id": body.get("anchor_id")}
    signed = services.sign_report(
        week=compose.parse_week(week), team=team, **read, actor=actor, now=now
    )
    return Done(WeeklyReportShape.render(signed))
