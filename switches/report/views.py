"""Pages of weekly reports: the list, and one report to read, print and sign."""

from django.conf import settings
from django.db.models import F
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET, require_POST

from controlplane.core import canonical
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict
from controlplane.core.http.permissions import actor_of
from controlplane.core.page_responses import PersonRequest, respond_done, show_refusal, signed_in
from switches.models import TeamReport, WeeklyReport
from switches.report import compose, services, signatures, weeks
from switches.report.renderer import build_sections

PAGE_SIZE = 26


@signed_in
@require_GET
def reports_page(request: PersonRequest) -> HttpResponse:
    now = db_now()
    before = request.GET.get("before", "")
    reports = WeeklyReport.objects.defer("content").order_by("-week")
    try:
        reports = reports.filter(week__lt=str(weeks.parse(before))) if before else reports
    except ValueError:
        before = ""
    found = list(reports[: PAGE_SIZE + 1])
    running = weeks.week_of(now, compose.get_zone())
    context = {
        "now": now,
        "running": running,
        "due_at": running.due_at(compose.get_zone()),
        "rows": [(report, weeks.parse(report.week)) for report in found[:PAGE_SIZE]],
        "older": found[PAGE_SIZE - 1].week if len(found) > PAGE_SIZE else None,
        "newest": not before,
        "zone": settings.TIME_ZONE,
    }
    return render(request, "switches/reports.html", context)


@signed_in
@require_GET
def report_page(request: PersonRequest, week: str, team: str = "") -> HttpResponse:
    now = db_now()
    report = compose.find_report(week, now, team)
    this = weeks.parse(report.week)
    has_previous = compose.select_reports(team).filter(week=str(this.later(-1))).exists()
    sections = build_sections(report.content)
    is_signable = report.signed_at is None and report.anchor_id is not None
    may_sign = is_signable and signatures.may_sign(actor_of(request), team, now)
    context = {
        "report": report,
        "may_sign": may_sign,
        "signers": signatures.list_signers(team, now) if is_signable and not may_sign else [],
        "team_reports": [] if team else list_team_reports(report.week),
        "address": services.get_path(report),
        "week": this,
        "acting": [section for section in sections if section["tone"] != "good"],
        "full": [section for section in sections if not section["is_quiet"]],
        "quiet": [section for section in sections if section["is_quiet"]],
        "sha256": canonical.digest(report.content) if report.anchor_id else "",
        "zone": report.content["time_zone"],
        "environment": report.content["environment"],
        "public_url": settings.PUBLIC_URL.rstrip("/"),
        "previous": this.later(-1) if has_previous else None,
        "next": this.later(1) if this.later(1).starts_at(compose.get_zone()) <= now else None,
    }
    return render(request, "switches/report.html", context)


@signed_in
@require_POST
def sign(request: PersonRequest, week: str, team: str = "") -> HttpResponse:
    comment = request.POST.get("comment", "").replace("\x00", "")
    anchor = request.POST.get("anchor_id", "")[:18]
    try:
        report = services.sign_report(
            week=compose.parse_week(week),
            team=team,
            comment=comment,
            anchor_id=int(anchor) if anchor.isascii() and anchor.isdigit() else None,
            actor=actor_of(request),
            now=db_now(),
        )
    except Conflict as conflict:
        return show_refusal(request, "Not signed", conflict, "reports_page")
    whose = f" of {report.team_name}" if team else ""
    return respond_done(request, f"{report.week}{whose} signed off.", services.get_path(report))


def list_team_reports(week: str) -> list[TeamReport]:
    """Return the reports of teams for a week, those that are not signed first."""
    rows = TeamReport.objects.filter(week=week).defer("content")
    return list(rows.order_by(F("signed_at").asc(nulls_first=True), "team"))
