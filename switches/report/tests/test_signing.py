"""Signing a report: once, by a person who may approve, for a week that is over."""

from functools import partial

import pytest

from controlplane.core.actors import Actor
from controlplane.core.audit.models import AuditEntry
from controlplane.core.errors import Conflict, Forbidden, NotFound
from controlplane.core.http.tests.callers import at_once, person
from controlplane.core.outbox.escalation import Escalation
from controlplane.core.roles import ALL_SCOPES, Role
from controlplane.notify.delivery.tests.conftest import by_bot, slack  # noqa: F401 - fixtures
from switches.models import WeeklyReport
from switches.report import services
from switches.report.attention import list_unsigned_reports
from switches.report.tests.house import DUE, SHELL, WEEK, make_moment

pytestmark = pytest.mark.django_db


@pytest.fixture
def final():
    services.generate_report(week=WEEK, actor=SHELL, now=DUE)
    services.send_report(week=WEEK, actor=SHELL, now=DUE)


def sign(actor, comment="read it"):
    return services.sign_report(week=WEEK, comment=comment, actor=actor, now=DUE)


def test_while_unsigned_it_waits_for_somebody_and_is_told_further_up(final):
    (waiting,) = list_unsigned_reports(DUE)

    assert (waiting.severity, waiting.path) == ("warning", "/reports/weekly/2026-W47/")
    escalation = Escalation.objects.get(subject="report:2026-W47")
    assert (escalation.severity, escalation.event) == ("warning", "report.unsigned")
    assert escalation.closed_at is None


def test_a_signature_is_kept_audited_and_ends_the_waiting(final):
    ayse = person("approver", "ayse").as_actor()

    sign(ayse, "  قرأته كله، شكراً  ")

    report = WeeklyReport.objects.get()
    assert (report.signed_by, report.signed_at) == ("user:ayse", DUE)
    assert report.comment == "قرأته كله، شكراً"
    row = AuditEntry.objects.get(action="report.signed")
    assert (row.actor_name, row.target, row.reason) == ("ayse", "report:2026-W47", report.comment)
    assert Escalation.objects.get().closed_at == DUE
    assert list_unsigned_reports(DUE) == []


def test_signing_again_changes_nothing_wherever_the_same_person_does(final):
    user = person("approver", "ayse")
    sign(user.as_actor(), "first")
    by_slack = Actor(
        type="slack", name="ayse", user_id=user.pk, role=Role.APPROVER, scopes=ALL_SCOPES
    )

    sign(user.as_actor(), "second")
    sign(by_slack, "third")

    assert WeeklyReport.objects.get().comment == "first"
    assert AuditEntry.objects.filter(action="report.signed").count() == 1


def test_a_second_person_is_told_who_has_signed(final):
    sign(person("approver", "ayse").as_actor())

    with pytest.raises(Conflict, match="user:ayse has already signed"):
        sign(person("admin", "root").as_actor())


@pytest.mark.parametrize("role", ["viewer", "operator"])
def test_who_may_not_approve_may_not_sign(final, role):
    with pytest.raises(Forbidden):
        sign(person(role).as_actor())


def test_the_shell_and_a_token_may_not_sign(final):
    token = Actor(type="token", name="ci", token_id=1, role=Role.ADMIN, scopes=ALL_SCOPES)

    for actor in (SHELL, token):
        with pytest.raises(Forbidden):
            sign(actor)


def test_a_report_signed_while_its_week_runs_has_to_be_signed_again_when_it_is_final():
    services.generate_report(week=WEEK, actor=SHELL, now=make_moment(3))
    early = sign(person("approver").as_actor())
    final = services.generate_report(week=WEEK, actor=SHELL, now=DUE)

    assert early.signed_by == "user:a-approver"
    assert (final.final, final.signed_at, final.signed_by) == (True, None, "")


def test_a_report_made_anew_while_its_week_runs_is_unsigned():
    services.generate_report(week=WEEK, actor=SHELL, now=make_moment(3))
    sign(person("approver").as_actor())

    assert services.generate_report(week=WEEK, actor=SHELL, now=make_moment(4)).signed_at is None


def test_a_report_made_anew_since_it_was_read_is_not_signed():
    read = services.generate_report(week=WEEK, actor=SHELL, now=make_moment(3)).anchor_id
    services.generate_report(week=WEEK, actor=SHELL, now=make_moment(4))
    ayse = person("approver", "ayse").as_actor()

    with pytest.raises(Conflict, match="generated again since you opened it"):
        services.sign_report(week=WEEK, comment="", anchor_id=read, actor=ayse, now=DUE)

    assert WeeklyReport.objects.get().signed_at is None


def test_a_report_that_nobody_made_is_not_signed():
    with pytest.raises(NotFound):
        sign(person("approver").as_actor())


def test_a_report_signed_before_it_is_told_is_not_told_further_up(by_bot):  # noqa: F811
    services.generate_report(week=WEEK, actor=SHELL, now=DUE)
    sign(person("approver").as_actor())

    assert services.send_report(week=WEEK, actor=SHELL, now=DUE)
    assert not Escalation.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_of_two_who_sign_at_once_one_is_told_of_the_other():
    services.generate_report(week=WEEK, actor=SHELL, now=DUE)
    actors = [person("approver", name).as_actor() for name in ("ayse", "lee")]

    def attempt(actor):
        try:
            return sign(actor).signed_by
        except Conflict:
            return "refused"

    done = at_once(*(partial(attempt, actor) for actor in actors))

    assert sorted(done) == ["refused", WeeklyReport.objects.get().signed_by]
    assert AuditEntry.objects.filter(action="report.signed").count() == 1
