"""A report is generated and sent once per week, also after the console was down."""

import hashlib
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

import pytest

from controlplane.core import canonical
from controlplane.core.audit import services as audit
from controlplane.core.audit.models import AuditEntry
from controlplane.core.errors import NotFound
from controlplane.core.http.tests.callers import at_once, person
from controlplane.core.outbox.escalation import Escalation
from controlplane.core.outbox.models import OutboxMessage
from controlplane.core.outbox.renderer import render
from controlplane.notify.delivery.tests.conftest import by_bot, slack  # noqa: F401 - fixtures
from switches.models import WeeklyReport
from switches.report import attention as waiting
from switches.report import services
from switches.report.tests.house import (
    DUE,
    MONDAY,
    NEXT_MONDAY,
    SHELL,
    WEEK,
    beat,
    began,
    engage,
    make_moment,
    section,
)

SECOND = timedelta(seconds=1)


def list_messages(event="report.ready"):
    return list(OutboxMessage.objects.filter(event=event).order_by("id"))


@pytest.mark.django_db
def test_nothing_is_made_before_monday_at_nine():
    began()

    assert beat(DUE - SECOND) > 0  # The previous report has been due for a week.
    assert not WeeklyReport.objects.filter(week=str(WEEK)).exists()


@pytest.mark.django_db
def test_on_monday_at_nine_the_week_that_ended_is_made_final_and_told_once(by_bot):  # noqa: F811
    began(MONDAY)
    engage("segment:finance", make_moment(2))

    turns = [beat(DUE + n * SECOND) for n in range(3)]

    report = WeeklyReport.objects.get()
    assert turns == [1, 0, 0]
    assert (report.week, report.final, report.generated_at) == ("2026-W47", True, DUE)
    assert (report.starts_at, report.ends_at) == (MONDAY, NEXT_MONDAY)
    assert report.sent_at == DUE
    assert [message.subject for message in list_messages()] == ["report:2026-W47"]


@pytest.mark.django_db(transaction=True)
def test_two_beats_at_once_make_and_tell_it_once(by_bot):  # noqa: F811
    began(MONDAY)

    at_once(*[partial(beat, DUE)] * 4)

    assert WeeklyReport.objects.count() == 1
    assert AuditEntry.objects.filter(action="report.generated").count() == 1
    assert AuditEntry.objects.filter(action="report.sent").count() == 1
    assert len(list_messages()) == 1
    assert Escalation.objects.filter(subject="report:2026-W47").count() == 1


@pytest.mark.django_db
def test_after_weeks_away_four_missing_ones_are_made_and_only_the_last_is_told(by_bot):  # noqa: F811
    began(MONDAY - timedelta(weeks=9))

    beat(DUE)
    beat(DUE + SECOND)

    rows = WeeklyReport.objects.order_by("week").values_list("week", "final")
    assert [week for week, _ in rows] == [f"2026-W{n}" for n in range(43, 48)]
    assert all(final for _, final in rows)
    assert [message.subject for message in list_messages()] == ["report:2026-W47"]
    assert Escalation.objects.values_list("subject", flat=True).get() == "report:2026-W47"
    assert [item.path[-9:-1] for item in waiting.list_unsigned_reports(DUE)] == [
        f"2026-W{n}" for n in range(43, 48)
    ]


@pytest.mark.django_db
def test_no_report_is_made_of_weeks_before_the_installation():
    began(NEXT_MONDAY + SECOND)

    assert beat(DUE) == 0
    assert not WeeklyReport.objects.exists()


@pytest.mark.django_db
def test_a_house_where_nothing_ever_happened_has_no_report():
    assert beat(DUE) == 0


@pytest.mark.django_db
def test_when_summer_time_has_begun_it_is_nine_by_the_new_clock(settings):
    settings.TIME_ZONE = "Europe/Berlin"
    began(datetime.fromisoformat("2026-03-25T00:00:00+00:00"))
    nine = datetime.fromisoformat("2026-03-30T09:00:00+02:00")

    assert beat(nine - SECOND) == 0
    assert beat(nine) == 1
    assert WeeklyReport.objects.get().week == "2026-W13"


@pytest.mark.django_db
def test_the_report_of_week_53_is_made_in_january():
    began(datetime.fromisoformat("2026-12-30T00:00:00+00:00"))

    beat(datetime.fromisoformat("2027-01-04T09:00:00+00:00"))

    assert WeeklyReport.objects.get().week == "2026-W53"


@pytest.mark.django_db
def test_a_final_report_is_never_made_again():
    first = services.generate_report(week=WEEK, actor=SHELL, now=NEXT_MONDAY)
    engage("segment:finance", make_moment(1))

    again = services.generate_report(week=WEEK, actor=SHELL, now=DUE)

    assert first.final
    assert again.content == first.content
    assert again.anchor_id == first.anchor_id


@pytest.mark.django_db
def test_while_the_week_runs_a_report_is_provisional_and_replaced(by_bot):  # noqa: F811
    early = services.generate_report(week=WEEK, actor=SHELL, now=make_moment(1))
    services.send_report(week=WEEK, actor=SHELL, now=make_moment(1))
    engage("segment:finance", make_moment(2))
    later = services.generate_report(week=WEEK, actor=SHELL, now=make_moment(3))
    again = services.send_report(week=WEEK, actor=SHELL, now=make_moment(3))
    final = services.generate_report(week=WEEK, actor=SHELL, now=DUE)
    last = services.send_report(week=WEEK, actor=SHELL, now=DUE)

    assert (early.final, later.final, final.final) == (False, False, True)
    assert section(early.content, "active")["total"] == 0
    assert section(later.content, "active")["total"] == 1
    assert (again, last) == (False, True)
    assert [message.payload["kind"] for message in list_messages()] == [", so far", ""]
    assert Escalation.objects.count() == 1


@pytest.mark.django_db
def test_a_part_that_cannot_be_read_is_waited_for(by_bot, broken):  # noqa: F811
    began(MONDAY)

    assert beat(DUE) == 0
    assert not WeeklyReport.objects.exists()
    broken.clear()

    assert beat(DUE + timedelta(minutes=5)) == 1
    assert not section(WeeklyReport.objects.get().content, "part")["unread"]
    assert len(list_messages()) == 1


@pytest.mark.django_db
def test_after_an_hour_it_is_told_without_and_made_anew_until_somebody_signs(by_bot, broken):  # noqa: F811
    began(MONDAY)
    later = DUE + timedelta(hours=1)
    beat(later)
    first = WeeklyReport.objects.get()
    assert first.final
    assert services.generate_report(week=WEEK, actor=SHELL, now=later).anchor_id == first.anchor_id
    broken.clear()

    again = services.generate_report(week=WEEK, actor=SHELL, now=later + SECOND)
    beat(later + SECOND)

    assert not section(again.content, "part")["unread"]
    assert again.final
    assert len(list_messages()) == 2
    assert Escalation.objects.count() == 1


@pytest.mark.django_db
def test_a_signed_one_is_never_made_again(by_bot, broken):  # noqa: F811
    services.generate_report(week=WEEK, actor=SHELL, now=DUE)
    ayse = person("approver", "ayse").as_actor()
    services.sign_report(week=WEEK, comment="one part is missing", actor=ayse, now=DUE)
    broken.clear()

    again = services.generate_report(week=WEEK, actor=SHELL, now=DUE + SECOND)

    assert section(again.content, "part")["unread"]


@pytest.mark.django_db
def test_without_a_destination_it_waits_to_be_told_and_escalates(settings):
    began(MONDAY)

    assert [beat(DUE + n * SECOND) for n in range(2)] == [1, 0]

    assert WeeklyReport.objects.get().sent_at is None
    assert not AuditEntry.objects.filter(action="report.sent").exists()
    assert Escalation.objects.get().notified_at is None
    settings.SLACK = replace(settings.SLACK, webhook_url="http://127.0.0.1:9/x")
    soon = DUE + timedelta(minutes=1)
    assert beat(soon) == 1
    assert WeeklyReport.objects.get().sent_at == soon
    assert AuditEntry.objects.get(action="report.sent").after == '{"destinations":1,"final":true}'


@pytest.mark.django_db
def test_a_week_to_come_has_no_report():
    with pytest.raises(NotFound, match="has not begun"):
        services.generate_report(week=WEEK, actor=SHELL, now=MONDAY - SECOND)


@pytest.mark.django_db
def test_the_anchor_is_the_row_that_holds_the_hash_of_what_the_report_says():
    engage("segment:finance", make_moment(1), reason="결제 이중 청구 ‏العربية‏ INC-4411 «é»")
    services.generate_report(week=WEEK, actor=SHELL, now=DUE)

    report = WeeklyReport.objects.get()
    row = AuditEntry.objects.get(pk=report.anchor_id)
    digest = hashlib.sha256(canonical.dumps(report.content).encode()).hexdigest()
    assert row.hash == report.anchor_hash
    assert f'"sha256":"{digest}"' in row.after
    assert audit.verify({report.anchor_id: report.anchor_hash}).intact
    assert not audit.verify({report.anchor_id: "0" * 64}).intact


@pytest.mark.django_db
def test_the_digest_names_the_worst_first_and_leads_to_the_page(by_bot):  # noqa: F811
    began(MONDAY)
    engage("segment:finance", make_moment(1), reason="card payments charged twice")
    engage("segment:old", MONDAY - timedelta(days=20))

    beat(DUE)

    message = render("report.ready", list_messages()[0].payload)
    labels = dict(message.lines)
    assert message.title == "Weekly report 2026-W47: action needed in 1 section"
    assert labels["First"].startswith("Forgotten switches: 1 switch engaged")
    assert labels["Then"].startswith("Vague reasons: 1 switch")
    assert "Engaged at the end of the week: 2" in labels["Counts"]
    assert labels["Audit anchor"].startswith(str(WeeklyReport.objects.get().anchor_id))
    assert message.path == "/reports/weekly/2026-W47/"


@pytest.mark.django_db
def test_every_message_of_a_report_has_words_of_its_own():
    facts = {"week": "2026-W47", "headline": "all calm", "kind": "", "by": "user:kim"}

    for event in ("report.ready", "report.unsigned", "report.signed"):
        assert "2026-W47" in render(event, facts).title
        assert "?" not in render(event, facts).title
