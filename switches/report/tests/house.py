"""An installation with a week behind it: episodes at chosen times, and a reader of its report."""

from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import transaction

from controlplane.accounts.models.people import User
from controlplane.core.actors import system_actor
from controlplane.core.audit import services as audit
from controlplane.core.http.tests.callers import person
from controlplane.core.jobs import engine
from controlplane.core.page_registry import REPORT_SECTIONS
from switches import services
from switches.models import Episode
from switches.report import services as reports
from switches.report.weeks import Week

GOOD = "OpenAI 5xx on completions since 02:10, INC-4411"
WEEK = Week(2026, 47)
MONDAY = datetime(2026, 11, 16, tzinfo=UTC)
NEXT_MONDAY = MONDAY + timedelta(days=7)
DUE = NEXT_MONDAY + timedelta(hours=9)
SHELL = system_actor("shell")

# Discover them before a test replaces them.
len(REPORT_SECTIONS)


def make_moment(day: int, hour: int = 0, minute: int = 0) -> datetime:
    """Return a time in the week; day 0 is its Monday."""
    return MONDAY + timedelta(days=day, hours=hour, minutes=minute)


def began(moment: datetime = MONDAY - timedelta(days=40)) -> None:
    """Write the installation's first audit row."""
    with transaction.atomic():
        audit.record(actor=SHELL, action="user.created", target="user:kim", now=moment)


def beat(moment: datetime) -> int:
    """Run the tick of reports and the jobs it starts; return how many jobs moved."""
    reports.run_due(moment)
    return engine.run_tick("jobs.turn", moment)


def kim() -> User:
    return User.objects.filter(username="kim").first() or person("approver", "kim")


def engage(switch: str, moment: datetime, **more: Any) -> Episode:
    """Engage a switch at a time, for a day with a good reason, or as `more` says."""
    scope, _, key = switch.partition(":")
    arguments = {"reason": GOOD, "expires_in": "24h", "on_expiry": "hold", **more}
    done = services.engage(scope=scope, key=key, actor=kim().as_actor(), now=moment, **arguments)
    return done.episode


def release(switch: str, moment: datetime) -> None:
    scope, _, key = switch.partition(":")
    services.release(
        scope=scope,
        key=key,
        justification="5xx below 0.1 % for twenty minutes",
        mode="immediate",
        actor=kim().as_actor(),
        now=moment,
    )


def section(content: dict[str, Any], slug: str) -> dict[str, Any]:
    (found,) = [section for section in content["sections"] if section["slug"] == slug]
    return found


def cells(content: dict[str, Any], slug: str) -> list[dict[str, Any]]:
    return [row["cells"] for row in section(content, slug)["rows"]]
