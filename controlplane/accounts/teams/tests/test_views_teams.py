"""The pages of teams, from an empty installation to one with many members."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from controlplane.accounts.models import Membership, Ownership, Team, User
from controlplane.accounts.teams import queries
from controlplane.core.approvals.models import Approval
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import browser_of, person
from switches.models import Switch

from .company import REASON, make_team


@pytest.fixture
def ada(db):
    return person("admin", "ada")


@pytest.fixture
def company(ada):
    person("approver", "bob")
    return make_team("company", members={"ada": "lead", "bob": "member"})


def read(user, path):
    response = browser_of(user).get(path)
    assert response.status_code == 200, response.content.decode()
    return " ".join(response.content.decode().split())


def test_empty_installation_explains_teams_and_that_nobody_else_approves(ada):
    page = read(ada, "/teams/")

    assert "Nothing changes until the first team exists" in page
    assert "nobody else has the role approver or admin" in page
    assert "manage.py config load DIR" in page


def test_viewer_of_an_empty_installation_is_told_who_creates_teams(db):
    assert "Admins create teams; your role is viewer." in read(person("viewer"), "/teams/")


def test_teams_are_listed_below_their_parents(company, ada):
    make_team("search", parent="company")
    make_team("billing", "Billing", parent="company", owns=["segment:finance*"])
    make_team("ledger", "Ledger", parent="billing")

    page = read(ada, "/teams/")

    names = ("Company", "Billing", "Ledger", "Search")
    places = [page.index(f"<bdi>{name}</bdi>") for name in names]
    assert places == sorted(places)
    assert "no active member" in page


def test_many_teams_have_pages(ada):
    Team.objects.bulk_create(
        Team(slug=f"team-{place:03}", name=f"Team {place:03}", created_at=db_now())
        for place in range(101)
    )

    first, second = read(ada, "/teams/"), read(ada, "/teams/?page=2")

    assert "Team 099" in first
    assert "Team 100" not in first
    assert "101 teams, page 2 of 2" in second
    assert "Team 100" in second


def test_a_long_line_of_parents_is_listed(db):
    start = 10_000
    Team.objects.bulk_create(
        Team(
            pk=start + place,
            slug=f"team-{place}",
            name=f"Team {place}",
            parent_id=start + place - 1 if place else None,
            created_at=db_now(),
        )
        for place in range(1100)
    )

    rows = queries.list_teams(None)

    assert [row.team.slug for row in rows] == [f"team-{place}" for place in range(1100)]
    assert [row.depth for row in rows[:6]] == [0, 1, 2, 3, 4, 4]


def test_teams_take_as_many_queries_with_many_resources(company, ada):
    def count_queries():
        with CaptureQueriesContext(connection) as queries:
            read(ada, "/teams/")
        return len(queries)

    read(ada, "/teams/")
    few = count_queries()
    now = db_now()
    Switch.objects.bulk_create(
        Switch(id=f"feature:n{n}", scope="feature", key=f"n{n}", registered_at=now)
        for n in range(100)
    )

    assert count_queries() == few


def test_form_requests_a_team_and_shows_it_as_pending(ada):
    person("approver", "bob")
    browser = browser_of(ada)
    form = {
        "slug": "payments",
        "name": "Payments",
        "leads": "ada, bob",
        "owns": "segment:finance*\nservice:core",
        "reason": REASON,
    }

    response = browser.post("/teams/new/", form)

    assert response.status_code == 302
    assert not Team.objects.exists()
    page = read(ada, "/teams/")
    assert "New team Payments: add ada (lead), bob (lead); own" in page
    assert "1 change waits for approval" in page


@pytest.mark.parametrize(
    ("path", "form", "problem"),
    [
        ("new/", {"slug": "Bad Slug", "name": "x"}, "lower-case letters"),
        ("new/", {"slug": "unowned", "name": "x"}, "reserved"),
        ("new/", {"slug": "company", "name": "x"}, "already exists"),
        ("new/", {"slug": "x", "name": "x", "members": "nobody"}, "no person nobody"),
        ("new/", {"slug": "x", "name": "x", "reason": ""}, "A reason is required"),
        ("company/members/", {"people": "", "role": "lead"}, "at least one user name"),
        ("company/members/", {"people": "nobody", "role": "lead"}, "no person nobody"),
        ("company/owns/", {"owns": "finance"}, "not of the form"),
        ("company/change/", {"name": ""}, "Enter a name"),
    ],
)
def test_wrong_form_is_shown_again(company, ada, path, form, problem):
    response = browser_of(ada).post(f"/teams/{path}", {"reason": REASON, **form})

    assert response.status_code == 422
    assert problem in response.content.decode()
    assert not Approval.objects.exists()


def test_stale_form_is_refused(company, ada):
    response = browser_of(ada).post(
        "/teams/company/owns/", {"owns": "segment:*", "seen": "old", "reason": REASON}
    )

    assert response.status_code == 409
    assert "Someone else changed this team" in response.content.decode()


def test_preview_says_what_changes_owner_without_changing_it(company, ada):
    make_team("search", parent="company", owns=["segment:*"])
    Switch.objects.create(
        id="segment:finance", scope="segment", key="finance", registered_at="2026-01-01T00:00Z"
    )

    response = browser_of(ada).post(
        "/teams/company/owns/", {"owns": "segment:fin*\nslo:none", "check": "yes"}
    )

    page = " ".join(response.content.decode().split())
    assert response.status_code == 200
    assert "segment:finance</bdi>, now of <b><bdi>Search</bdi></b>" in page
    assert 'By <bdi class="mono">slo:none</bdi> the team would own no known resource.' in page
    assert list(Ownership.objects.values_list("pattern", flat=True)) == ["segment:*"]


def test_approval_page_names_what_is_taken_over(company, ada):
    make_team("search", parent="company", owns=["segment:*"])
    Switch.objects.create(
        id="segment:finance", scope="segment", key="finance", registered_at="2026-01-01T00:00Z"
    )
    browser_of(ada).post("/teams/company/owns/", {"owns": "segment:fin*", "reason": REASON})

    page = read(User.objects.get(username="bob"), "/approvals/")

    assert "segment:finance (of Search)" in page


def test_name_is_saved_at_once(company, ada):
    form = {"name": "決済 💳", "runbook_url": "https://wiki/x"}

    response = browser_of(ada).post("/teams/company/change/", form)

    company.refresh_from_db()
    assert (response.status_code, company.name) == (302, "決済 💳")
    assert "決済 💳" in read(ada, "/teams/company/")


def test_member_changes_role_and_leaves(company, ada):
    bob = User.objects.get(username="bob")
    path = f"/teams/company/members/{bob.pk}/"

    for role in ("lead", ""):
        browser_of(ada).post(path, {"role": role, "reason": REASON})

    newest = Approval.objects.get(state="pending")
    assert newest.summary == "Change the team Company: remove bob"
    assert Membership.objects.get(user=bob).role == "member"


def test_others_see_the_team_but_no_forms(company):
    kim = person("operator", "kim")

    page = read(kim, "/teams/company/")

    assert "Admins, and leads and approvers of this team" in page
    assert "/teams/company/change/" not in page
    assert browser_of(kim).get("/teams/company/change/").status_code == 403
    assert browser_of(kim).get("/teams/new/").status_code == 403


def test_lead_edits_own_team_and_creates_teams_below(company):
    kim = person("operator", "kim")
    make_team("payments", parent="company", members={"kim": "lead"})

    assert "/teams/payments/change/" in read(kim, "/teams/payments/")
    form = {"slug": "ledger", "name": "Ledger", "parent": "payments", "reason": REASON}
    assert browser_of(kim).post("/teams/new/", form).status_code == 302
    other = {**form, "slug": "other", "parent": "company"}
    assert browser_of(kim).post("/teams/new/", other).status_code == 422


def test_300_members_are_searched_and_paged(company, ada):
    people = User.objects.bulk_create(User(username=f"kim{n}", role="operator") for n in range(300))
    Membership.objects.bulk_create(Membership(team=company, user=one) for one in people)

    page = read(ada, "/teams/company/")
    found = read(ada, "/teams/company/?q=kim299")

    assert "302 members" in page
    assert "Page 1 of 7" in page
    assert page.index("<bdi>ada</bdi>") < page.index("<bdi>bob</bdi>")
    assert "kim299" in found
    assert "kim1<" not in found


def test_team_with_teams_below_offers_no_deletion(company, ada):
    make_team("search", parent="company")

    page = read(ada, "/teams/company/delete/")

    assert "Move or delete them first." in page
    assert "Request deletion" not in page


def test_last_team_says_that_roles_alone_decide_again(company, ada):
    assert "This is the only team" in read(ada, "/teams/company/delete/")


def test_unowned_resources_are_listed_by_kind(company, ada):
    for key in ("a", "b"):
        Switch.objects.create(
            id=f"segment:{key}", scope="segment", key=key, registered_at="2026-01-01T00:00Z"
        )
    Ownership.objects.create(team=company, pattern="segment:b")

    page = read(ada, "/teams/unowned/")

    assert "segment:a" in page
    assert "segment:b" not in page
    assert "No SLOs without an owner" in read(ada, "/teams/unowned/?kind=slo")
    assert "1 switch</a>" in read(ada, "/teams/")


def test_rules_are_shown_and_changed_by_admins_alone(company, ada):
    kim = person("operator", "kim")

    page = read(ada, "/teams/authority/")
    assert "an operator or a stronger role, of the owning team, or of a team above it" in page
    assert "/teams/authority/new/" not in read(kim, "/teams/authority/")
    assert browser_of(kim).get("/teams/authority/release/all/").status_code == 403
    form = {"action": "replay", "kind": "stream", "relation": "anyone", "role": "operator"}
    response = browser_of(ada).post("/teams/authority/new/", {**form, "reason": REASON})

    assert response.status_code == 302
    assert Approval.objects.get().target == "authority:replay:stream"
    assert browser_of(ada).get("/teams/authority/fly/all/").status_code == 404
    assert browser_of(ada).get("/teams/authority/release/global/").status_code == 200
