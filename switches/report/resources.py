"""Serializers of weekly reports, for responses and the OpenAPI document."""

from datetime import datetime
from typing import Any

from rest_framework import serializers

from controlplane.core.canonical import timestamp
from switches.models import WeeklyReport
from switches.report.compose import WORST_FIRST


def report_resource(report: WeeklyReport) -> dict[str, Any]:
    """Return a report without its sections."""
    return {
        "week": report.week,
        "starts_at": timestamp(report.starts_at),
        "ends_at": timestamp(report.ends_at),
        "generated_at": timestamp(report.generated_at),
        "final": report.final,
        "anchor": _anchor(report),
        "sent_at": _stamp(report.sent_at),
        "signed_at": _stamp(report.signed_at),
        "signed_by": report.signed_by or None,
        "comment": report.comment,
    }


def full_resource(report: WeeklyReport) -> dict[str, Any]:
    """Return a report with its sections."""
    said = ("time_zone", "environment", "sections")
    return {**report_resource(report), **{name: report.content[name] for name in said}}


def unsaved_report(content: dict[str, Any], starts_at: datetime, ends_at: datetime) -> WeeklyReport:
    """Return an unsaved report with composed content."""
    return WeeklyReport(
        week=content["week"],
        starts_at=starts_at,
        ends_at=ends_at,
        generated_at=datetime.fromisoformat(content["generated_at"]),
        final=False,
        content=content,
    )


def _anchor(report: WeeklyReport) -> dict[str, Any] | None:
    if report.anchor_id is None:
        return None
    return {"id": report.anchor_id, "hash": report.anchor_hash}


def _stamp(moment: datetime | None) -> str | None:
    return timestamp(moment) if moment else None


class AnchorShape(serializers.Serializer[Any]):
    id = serializers.IntegerField(help_text="Id of the audit row written with the report.")
    hash = serializers.CharField()


class ReportShape(serializers.Serializer[WeeklyReport]):
    week = serializers.CharField(help_text="ISO week such as 2026-W47.")
    starts_at = serializers.DateTimeField()
    ends_at = serializers.DateTimeField(help_text="Start of the next week.")
    generated_at = serializers.DateTimeField()
    final = serializers.BooleanField(help_text="False until the week has ended.")
    anchor = AnchorShape(allow_null=True, help_text="Null if the report is not saved.")
    sent_at = serializers.DateTimeField(allow_null=True)
    signed_at = serializers.DateTimeField(allow_null=True)
    signed_by = serializers.CharField(allow_null=True)
    comment = serializers.CharField()

    def to_representation(self, report: WeeklyReport) -> dict[str, Any]:
        return report_resource(report)


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


class FullReportShape(ReportShape):
    time_zone = serializers.CharField()
    environment = serializers.CharField()
    sections = SectionShape(many=True)
