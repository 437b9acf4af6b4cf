"""`manage.py report weekly`: writes nothing without --send, and with it saves and sends once."""

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.notify.delivery.tests.conftest import by_bot, slack  # noqa: F401 - fixtures
from switches.models import WeeklyReport
from switches.report.compose import get_zone
from switches.report.tests.house import engage

pytestmark = pytest.mark.django_db


def report(*arguments):
    out = StringIO()
    call_command("report", "weekly", *arguments, stdout=out)
    return out.getvalue()


def test_without_a_week_it_makes_and_prints_the_last_complete_one_and_tells_nobody(running):
    engage(
        "segment:finance", running.starts_at(get_zone()) - (db_now() - db_now().replace(second=0))
    )

    output = report()

    assert f"Weekly report {running.later(-1)}" in output
    assert "stored, not sent" in output
    assert WeeklyReport.objects.get().sent_at is None


def test_rows_carry_the_address_of_their_page(running, settings):
    settings.PUBLIC_URL = "https://switchgear.example/"
    engage("segment:finance", db_now(), reason="card payments charged twice\nsince the deploy")

    output = report("--week", str(running))

    assert "so far" in output
    assert "https://switchgear.example/switches/segment/finance/" in output
    assert "card payments charged twice since the deploy" in output


def test_send_without_anybody_to_tell_keeps_it_and_says_so(running):
    output = report("--send")

    assert "stored, not sent;" in output
    assert WeeklyReport.objects.get().sent_at is None


def test_send_keeps_it_and_tells_it_once(running, by_bot):  # noqa: F811
    first, again = report("--send"), report("--send")

    report_row = WeeklyReport.objects.get()
    assert (report_row.week, report_row.final) == (str(running.later(-1)), True)
    assert "sent now" in first
    assert "sent before" in again
    assert f"audit anchor {report_row.anchor_id}:{report_row.anchor_hash}" in again
    made = AuditEntry.objects.get(action="report.generated")
    assert (made.actor_type, made.actor_name.partition(":")[0]) == ("system", "shell")
    assert AuditEntry.objects.filter(action="report.sent").count() == 1


def test_json_is_the_resource_of_the_api(running):
    body = json.loads(report("--json", "--week", str(running)))

    assert body["week"] == str(running)
    assert body["final"] is False
    assert body["sections"]


@pytest.mark.parametrize("week", ["2026-47", "2025-W53", ""])
def test_a_week_that_is_none_ends_it_with_what_to_write(week):
    with pytest.raises(CommandError, match="such as 2026-W47") as raised:
        report("--week", week)

    assert raised.value.returncode == 2


def test_a_week_to_come_ends_it(running):
    with pytest.raises(CommandError, match="has not begun"):
        report("--week", str(running.later(1)), "--send")
