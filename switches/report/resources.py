"""Serializers of weekly reports, for responses and the OpenAPI document."""

from typing import Any

from rest_framework import serializers

from controlplane.core.http.resources import OptionalTextField, Resource, TimestampField
from switches.models import WeeklyReport
from switches.report.compose import WORST_FIRST


class AnchorShape(Resource[WeeklyReport]):
    id = serializers.IntegerField(
        source="anchor_id", help_text="Id of the audit row written with the report."
    )
    hash = serializers.CharField(source="anchor_hash")

    def to_representation(self, report: WeeklyReport) -> Any:
        return None if report.anchor_id is None else super().to_representation(report)


class ReportShape(Resource[WeeklyReport]):
    week = serializers.CharField(help_text="ISO week such as 2026-W47.")
    starts_at = TimestampField()
    ends_at = TimestampField(help_text="Start of the next week.")
    generated_at = TimestampField()
    final = serializers.BooleanField(help_text="False until the week has ended.")
    anchor = AnchorShape(source="*", allow_null=True, help_text="Null if the report is not saved.")
    sent_at = TimestampField(allow_null=True)
    signed_at = TimestampField(allow_null=True)
    signed_by = OptionalTextField()
    comment = serializers.CharField()


class ChartShape(serializers.Serializer[Any]):
    title = serializers.CharField()
    unit = serializers.CharField()
    alt = serializers.CharField()
    bars = serializers.ListField(
        child=serializers.ListField(child=serializers.JSONField()),
        help_text="Pairs of a label and a number.",
    )


class RowShape(serializers.Serializer[Any]):
    cells = serializers.DictField(
        child=serializers.JSONField(),
        help_text="Values by column; `…_at` are times, `…_seconds` durations.",
    )
    path = serializers.CharField(help_text="Path of the console page.")


class SectionShape(serializers.Serializer[Any]):
    slug = serializers.CharField()
    title = serializers.CharField()
    summary = serializers.CharField()
    tone = serializers.ChoiceField(WORST_FIRST)
    columns = serializers.ListField(child=serializers.CharField())
    rows = RowShape(many=True)
    total = serializers.IntegerField(help_text="Number of all rows; `rows` lists the first.")
    charts = ChartShape(many=True)
    unread = serializers.BooleanField(help_text="True if the section could not be read.")

    def to_representation(self, section: Any) -> Any:
        return section  # Stored as JSON; an older report may lack keys.


class FullReportShape(ReportShape):
    time_zone = serializers.CharField(source="content.time_zone")
    environment = serializers.CharField(source="content.environment")
    sections = SectionShape(source="content.sections", many=True)
