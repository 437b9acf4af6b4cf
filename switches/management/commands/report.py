"""Command `manage.py report weekly`: generate, print and optionally send the weekly report."""

import json
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from controlplane.core.clock import db_now
from controlplane.core.errors import NotFound
from controlplane.core.shell import ShellCommand, shell_actor
from switches.report import services, weeks
from switches.report.api import WeeklyReportDetailShape
from switches.report.compose import get_zone
from switches.report.renderer import render_lines
from switches.report.weeks import Week

WRONG_ARGUMENT = 2


class Command(ShellCommand):
    help = "Generate, store and print the weekly report; with --send, also send it once."

    def add_arguments(self, parser: ArgumentParser) -> None:
        kinds = parser.add_subparsers(dest="kind", required=True)
        weekly = kinds.add_parser("weekly", help="report of an ISO week")
        weekly.add_argument(
            "--week", help="week such as 2026-W47 (default: the last complete week)"
        )
        weekly.add_argument("--team", default="", help="slug of a team, for its report")
        weekly.add_argument(
            "--send", action="store_true", help="also send it, unless it was sent before"
        )
        weekly.add_argument("--json", action="store_true", help="print JSON as in the API")

    def handle(self, *args: Any, **options: Any) -> None:
        now = db_now()
        week = self._week(options["week"], weeks.week_of(now, get_zone()))
        given: dict[str, Any] = {"week": week, "team": options["team"]}
        try:
            report = services.generate_report(**given, actor=shell_actor(), now=now)
        except NotFound as error:
            raise CommandError(str(error), returncode=WRONG_ARGUMENT) from error
        sent = options["send"] and services.send_report(**given, actor=shell_actor(), now=now)
        report.refresh_from_db()
        if options["json"]:
            self.line(json.dumps(WeeklyReportDetailShape.render(report)))
            return
        for line in render_lines(report.content, get_zone(), settings.PUBLIC_URL.rstrip("/")):
            self.line(line)
        self.line()
        signed = f"signed by {report.signed_by}" if report.signed_at else "not signed off"
        status = "sent now" if sent else "sent before" if report.sent_at else "stored, not sent"
        self.line(f"{status}; {signed}; audit anchor {report.anchor_id}:{report.anchor_hash}")

    def _week(self, written: str | None, running: Week) -> Week:
        if written is None:
            return running.later(-1)
        try:
            week = weeks.parse(written)
        except ValueError as error:
            raise CommandError(f"--week: {error}", returncode=WRONG_ARGUMENT) from error
        if week > running:
            raise CommandError(
                f"--week: {week} has not begun; this is {running}.", returncode=WRONG_ARGUMENT
            )
        return week
