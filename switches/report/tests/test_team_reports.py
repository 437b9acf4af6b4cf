"""The weekly reports of teams: what they own, who gets them, and who signs."""

from dataclasses import replace

import pytest

from controlplane.accounts.models import AuthorityRule, Team
from controlplane.accounts.teams import documents
from controlplane.accounts.teams.tests.teams import create_team
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict, Forbidden, NotFound
from controlplane.core.http.tests.callers import as_role, person, signed_in
from controlplane.core.jobs import engine
from controlplane.core.jobs.models import Job
from controlplane.core.outbox.escalation import Escalation
from controlplane.core.outbox.models import OutboxMessage
from controlplane.notify.delivery.tests.message_samples import hook
from controlplane.notify.models import TeamContact
from controlplane.notify.models.targets import Target
from controlplane.notify.targets.tests.people import add
from switches import services as switches
from switches.models import Switch, TeamReport, WeeklyReport
from switches.report import attention, compose, services
from switches.report.tests.house import (
    DUE,
    MONDAY,
    SHELL,
    WEEK,
    beat,
    began,
    cells,
    engage,
    make_moment,
    section,
)
from switches.tests.browsers import browser, page, text

pytestmark = pytest.mark.django_db
PAYMENTS = f"/reports/weekly/{WEEK}/payments/"


@pytest.fixture(autouse=True)
def _somewhere(settings):
    """A channel of the installation, which gets the report about everything."""
    settings.SLACK = replace(settings.SLACK, webhook_url="http://127.0.0.1:9/x")


@pytest.fixture
def teams():
    """Two teams below Root; Payments owns one of three engaged switches, Search another."""
    began(MONDAY)
    for key in ("finance", "search", "other"):
        engage(f"segment:{key}", make_moment(2), expires_in="30d")
    root = create_team("root")
    create_team("payments", "segment:fin*", parent=root)
    create_team("search", "segment:search", parent=root)
    create_team("idle", parent=root)
    return Team.objects.in_bulk(field_name="slug")


def give_channel(team: Team) -> Target:
    target = hook(f"{team.slug}-hook")
    TeamContact.objects.create(team=team, kind="channel", target=target)
    return target


def generate(team: str = "payments") -> TeamReport:
    return services.generate_report(week=WEEK, team=team, actor=SHELL, now=DUE)


def list_switches(content, slug: str = "active") -> set[str]:
    return {row["switch"] for row in cells(content, slug)}


def test_report_of_a_team_has_only_what_it_owns(teams):
    assert list_switches(generate().content) == {"segment:finance"}
    assert list_switches(generate("root").content) == {"segment:finance", "segment:search"}
    everything = services.generate_report(week=WEEK, actor=SHELL, now=DUE)
    assert len(list_switches(everything.content)) == 3


@pytest.mark.parametrize(
    ("slug", "total"), [("flow", 1), ("extends", 0), ("who", 2), ("not_rehearsed", 1)]
)
def test_sections_count_only_what_the_team_owns(teams, slug, total):
    for key in ("finance", "search"):
        switches.release(
            scope="segment",
            key=key,
            justification="5xx below 0.1 % for twenty minutes",
            mode="immediate",
            actor=SHELL,
            now=make_moment(4),
        )

    assert section(generate().content, slug)["total"] == total


def test_each_section_of_a_team_can_be_read(teams):
    content = generate().content

    assert not [one["slug"] for one in content["sections"] if one["unread"]]
    slugs = {one["slug"] for one in content["sections"]}
    assert {"breakers", "overrides", "dead-letters", "budgets", "ramps", "trips"} <= slugs
    assert not {"deliveries", "unowned"} & slugs


def test_report_about_everything_lists_what_nobody_owns(teams):
    content = compose.compose(WEEK, DUE)

    assert [row["name"] for row in cells(content, "unowned")] == ["segment:other"]
    assert section(content, "unowned")["tone"] == "warn"


def test_report_about_everything_without_teams_has_no_sections_about_teams():
    began(MONDAY)

    slugs = {one["slug"] for one in compose.compose(WEEK, DUE)["sections"]}

    assert not {"unowned", "authority_changes"} & slugs


def test_changes_of_authority_are_in_words(teams):
    payments, now = teams["payments"], make_moment(3)
    before = documents.read_documents(Team.objects.all())
    kim = person("operator", "pat")
    payments.memberships.create(user=kim, role="lead")
    payments.ownerships.create(pattern="service:pay")
    documents.record_changes(before, actor=SHELL, now=now, reason="new on-call")

    for content in (compose.compose(WEEK, DUE), generate().content):
        (row,) = cells(content, "authority_changes")
        assert (row["about"], row["reason"]) == ("team:payments", "new on-call")
        assert row["change"] == "add pat (lead); own service:pay"
    assert section(generate("search").content, "authority_changes")["total"] == 0


def test_one_job_makes_the_reports_of_all_teams_that_own_something(teams):
    beat(DUE)

    assert Job.objects.get(kind="report").state == "completed"
    made = TeamReport.objects.values_list("team", flat=True)
    assert set(made) == {"root", "payments", "search"}
    assert WeeklyReport.objects.count() == 1
    assert beat(DUE) == 0


def test_report_goes_to_the_channels_of_its_team_alone(teams):
    channel = give_channel(teams["payments"])
    generate()

    services.send_report(week=WEEK, team="payments", actor=SHELL, now=DUE)

    (message,) = OutboxMessage.objects.filter(event="report.ready")
    assert message.destination == f"webhook:{channel.pk}"
    assert message.payload["of"] == " of Payments"
    escalation = Escalation.objects.get()
    assert escalation.subject == f"report:{WEEK}:payments"
    assert escalation.resource == "team:payments"


def test_teams_get_their_reports_while_no_route_leads_anywhere(teams, settings):
    settings.SLACK = replace(settings.SLACK, webhook_url="")
    give_channel(teams["payments"])

    beat(DUE)

    assert Job.objects.get(kind="report").state != "completed"
    sent = TeamReport.objects.exclude(sent_at=None).values_list("team", flat=True)
    assert list(sent) == ["payments"]


def test_lease_is_renewed_with_each_report_that_is_sent(teams):
    leases = []

    def note(point):
        if point == "report.team_notified":
            leases.append(Job.objects.get(kind="report").lease_until)

    services.run_due(DUE)
    engine.run_tick("jobs.turn", DUE, note)

    assert len(set(leases)) == len(leases) == 3


def test_report_of_a_team_that_reaches_nobody_calls_nobody(teams):
    generate()

    assert not services.send_report(week=WEEK, team="payments", actor=SHELL, now=DUE)
    assert not OutboxMessage.objects.filter(event="report.ready").exists()
    assert not Escalation.objects.exists()
    (item,) = attention.list_unsigned_team_reports(DUE)
    assert (item.path, item.resource) == (PAYMENTS, "team:payments")


def sign(user, team: str = "payments") -> TeamReport:
    return services.sign_report(
        week=WEEK, team=team, comment="read", actor=user.as_actor(), now=DUE
    )


@pytest.mark.parametrize(
    ("role", "team", "team_role"),
    [
        ("operator", "payments", "lead"),
        ("approver", "payments", "member"),
        ("approver", "root", "member"),
        ("operator", "root", "lead"),
    ],
)
def test_leads_and_approvers_of_the_team_or_above_sign(teams, role, team, team_role):
    user = person(role, "sam")
    teams[team].memberships.create(user=user, role=team_role)
    generate()

    assert sign(user).signed_by == "user:sam"
    assert attention.list_unsigned_team_reports(DUE) == []
    assert AuditEntry.objects.get(action="report.signed").target == f"report:{WEEK}:payments"


@pytest.mark.parametrize(
    ("role", "team", "team_role"),
    [
        ("operator", "payments", "member"),
        ("viewer", "payments", "lead"),
        ("approver", "search", "member"),
        ("operator", "search", "lead"),
        ("approver", None, ""),
    ],
)
def test_others_do_not_sign(teams, role, team, team_role):
    user = person(role, "sam")
    if team:
        teams[team].memberships.create(user=user, role=team_role)
    lea = person("operator", "lea")
    teams["payments"].memberships.create(user=lea, role="lead")
    generate()

    with pytest.raises(Forbidden) as refused:
        sign(user)
    assert "lea" in refused.value.extra["who_may"]


def test_person_on_call_for_the_team_signs(teams):
    pat = person("operator", "pat")
    add("pat", user="pat")
    rotation = add("rotation", "on_call", members=["pat"], rotation_starts_at=db_now())
    TeamContact.objects.create(team=teams["payments"], kind="on_call", target=rotation)
    generate()

    assert sign(pat).signed_at == DUE


def test_who_may_approve_changes_of_the_team_signs(teams):
    AuthorityRule.objects.create(action="approve", kind="team", relation="anyone", role="approver")
    generate()

    assert sign(person("approver", "sam")).signed_by == "user:sam"


def test_signature_stays_with_the_first_person(teams):
    generate()
    for name in ("lea", "sam"):
        teams["payments"].memberships.create(user=person("operator", name), role="lead")
    sign(teams["payments"].memberships.get(user__username="lea").user)

    with pytest.raises(Conflict):
        sign(teams["payments"].memberships.get(user__username="sam").user)


def test_unsigned_reports_of_a_team_are_one_item(teams):
    generate()
    services.generate_report(week=WEEK.later(-1), team="payments", actor=SHELL, now=DUE)
    generate("search")

    items = attention.list_unsigned_team_reports(DUE)

    assert [one.resource for one in items] == ["team:payments", "team:search"]
    assert "2026-W46 of Payments" in items[0].title


def test_page_says_whose_report_it_is_and_offers_the_form_to_signers_alone(teams):
    lea = person("operator", "lea")
    teams["payments"].memberships.create(user=lea, role="lead")
    generate()
    services.generate_report(week=WEEK, actor=SHELL, now=DUE)

    own, others = (browser(one).get(PAYMENTS) for one in (lea, person("approver", "sam")))

    assert "This report covers only what Payments" in text(page(own))
    assert "segment:search" not in page(own)
    assert f'action="{PAYMENTS}sign/"' in page(own)
    assert "sign/" not in page(others)
    assert "lea" in text(page(others))
    everything = page(browser(lea).get(f"/reports/weekly/{WEEK}/"))
    assert f'href="{PAYMENTS}"' in everything
    assert "This report covers only what" not in everything
    assert browser(lea).post(f"{PAYMENTS}sign/", {"comment": "ok"}).status_code == 302
    assert TeamReport.objects.get().signed_by == "user:lea"


def test_unknown_team_has_no_report(teams):
    with pytest.raises(NotFound):
        generate("gone")
    assert as_role("viewer").get(f"/reports/weekly/{WEEK}/gone/").status_code == 404


def test_report_outlasts_its_team(teams):
    generate()
    teams["payments"].ownerships.all().delete()
    teams["payments"].delete()

    assert as_role("viewer").get(PAYMENTS).json()["team"] == "payments"


def test_api_lists_shows_and_signs_reports_of_a_team(teams):
    lea = person("operator", "lea")
    teams["payments"].memberships.create(user=lea, role="lead")
    generate()
    services.generate_report(week=WEEK, actor=SHELL, now=DUE)
    api = signed_in(lea)

    (listed,) = api.get("/reports/weekly/", {"team": "payments"}).json()["results"]
    (main,) = api.get("/reports/weekly/").json()["results"]
    assert (listed["team"], main["team"]) == ("payments", "")
    assert api.get(PAYMENTS).json()["week"] == str(WEEK)
    assert api.post(f"{PAYMENTS}sign").status_code == 200
    assert api.post(f"/reports/weekly/{WEEK}/search/sign").status_code == 403


def test_forty_teams_are_made_in_several_turns(teams, monkeypatch):
    for number in range(40):
        engage(f"feature:f{number}", make_moment(1), expires_in="30d")
        create_team(f"team-{number}", f"feature:f{number}")
    assert Switch.objects.count() == 43

    beat(DUE)
    while Job.objects.get(kind="report").state != "completed":
        beat(DUE)

    assert TeamReport.objects.filter(final=True).count() == 43
    assert Job.objects.filter(kind="report").count() == 1
