"""The API, the page and the command on who could have done something on a day."""

from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from controlplane.accounts.people.services import create_user
from controlplane.accounts.teams import services as teams
from controlplane.core.actors import system_actor
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import browser_of, person, signed_in, with_token

pytestmark = pytest.mark.django_db

DAY = datetime(2026, 3, 2, tzinfo=UTC)
SHELL = system_actor("shell:root")
ASKED = {"action": "release", "resource": "segment:finance", "from": "2026-03-02"}


@pytest.fixture
def company():
    before = DAY - timedelta(days=1)
    for name in ("pat", "sam"):
        create_user(username=name, password=None, role="operator", actor=SHELL, now=before)
    wanted = {"name": "Payments", "members": {"pat": "lead"}, "owns": ["segment:*"]}
    teams.create_team(slug="payments", wanted=wanted, actor=SHELL, now=before)


def test_api_lists_rules_and_holders(company):
    answer = signed_in(person("viewer")).get("/audit/who-could", ASKED).json()

    day = {"start": "2026-03-02T00:00:00.000000Z", "end": "2026-03-03T00:00:00.000000Z"}
    assert answer["period"] == day
    assert answer["rules"] == [
        {
            "period": day,
            "owner": {"slug": "payments", "name": "Payments"},
            "relation": "owner",
            "role": "operator",
        }
    ]
    assert answer["holders"] == [
        {"kind": "user", "name": "pat", "because": "operator, lead of Payments", "periods": [day]}
    ]


def test_api_takes_the_scope_audit_read(company):
    assert with_token("audit:read").get("/audit/who-could", ASKED).status_code == 200
    assert (
        with_token("switches:read", owner=person("admin"))
        .get("/audit/who-could", ASKED)
        .status_code
        == 403
    )


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"action": "fly"}, "action"),
        ({"resource": "segment:fin*"}, "resource"),
        ({"resource": "planet:mars"}, "resource"),
        ({"resource": "team:"}, "resource"),
        ({"from": "2999-01-01"}, "from"),
        ({"from": "9999-12-31"}, "from"),
        ({"from": "0001-01-01"}, "from"),
        ({"from": "soon"}, "from"),
        ({"to": "2026-03-01"}, "to"),
        ({"to": "2026-05-01"}, "to"),
    ],
)
def test_api_refuses_an_impossible_question(company, changed, field):
    answer = signed_in(person("viewer")).get("/audit/who-could", {**ASKED, **changed})

    assert answer.status_code == 400
    assert field in answer.json()["errors"]


def test_page_shows_who_could_on_a_day_in_the_past(company):
    said = browser_of(person("viewer")).get(
        "/audit/who-could/",
        {"action": "release", "resource": "segment:finance", "day": "2026-03-02"},
    )

    page = " ".join(said.content.decode().split())
    assert "operator, lead of Payments" in page
    assert "pat" in page
    assert "sam" not in page
    assert "all day" in page
    assert "No token could have done it." in page


def test_page_asks_first_and_says_what_is_wrong(company):
    browser = browser_of(person("viewer"))

    empty = browser.get("/audit/who-could/").content.decode()
    wrong = browser.get(
        "/audit/who-could/", {"action": "release", "resource": "finance", "day": "2999-01-01"}
    ).content.decode()

    assert "Owner and rule" not in empty
    assert f'value="{db_now():%Y-%m-%d}"' in empty
    assert "is not of the form kind:name" in wrong
    assert "This day is yet to come." in wrong


def test_page_refuses_the_first_day_of_all(company):
    page = browser_of(person("viewer")).get(
        "/audit/who-could/",
        {"action": "release", "resource": "segment:finance", "day": "0001-01-01"},
    )

    assert "Must be in 2000 or later." in page.content.decode()


def test_page_says_that_the_trail_begins_later(company):
    page = browser_of(person("viewer")).get(
        "/audit/who-could/",
        {"action": "release", "resource": "segment:finance", "day": "2026-02-01"},
    )

    assert "The trail begins at" in page.content.decode()
    assert "Nobody could have done it." not in page.content.decode()


def test_command_lists_the_same(company):
    out, err = StringIO(), StringIO()

    call_command(
        "audit", "who-could", "release", "segment:finance", "2026-03-02", stdout=out, stderr=err
    )

    day = "2026-03-02 00:00:00 to 2026-03-03 00:00:00"
    assert out.getvalue().splitlines() == [
        f"{day}  owned by Payments: members of the owner, or of a team above it, with the role"
        " operator or higher",
        f"{day}  user pat: operator, lead of Payments",
    ]
    assert "break-glass" in err.getvalue()


def test_command_refuses_a_pattern():
    with pytest.raises(CommandError, match="Name one resource"):
        call_command("audit", "who-could", "release", "segment:*", "2026-03-02")


def test_command_refuses_the_last_day_of_all():
    with pytest.raises(CommandError, match="in the past"):
        call_command("audit", "who-could", "release", "segment:a", "9999-12-31")
