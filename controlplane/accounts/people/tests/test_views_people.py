"""The People pages: creating, changing, deactivating and unlocking."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from controlplane.accounts.models.directory import DirectoryUser
from controlplane.accounts.models.people import BrowserSession, User
from controlplane.accounts.models.tokens import Token
from controlplane.accounts.people import services as people
from controlplane.core.actors import system_actor
from controlplane.core.approvals.models import Approval
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.http import confirmation
from controlplane.core.http.tests.callers import browser_of, person, token_text
from controlplane.notify.models.targets import OnCallMember, Target

pytestmark = pytest.mark.django_db
DIALOG = {"HX-Request": "true", "HX-Target": "dialog-body"}
LEE = {"username": "lee", "display_name": "Lee Park", "role": "operator", "time_zone": "UTC"}


@pytest.fixture
def root():
    return browser_of(person("admin", "root"))


@pytest.fixture
def kim():
    return person("operator", "kim")


def page(client, user):
    return client.get(f"/people/{user.pk}/").content.decode()


def shown_once(html):
    return re.search(r'<pre id="shown-once"[^>]*>([^<]+)</pre>', html)[1]


def test_people_are_found_by_name_address_role_and_state(root, kim):
    kim.email = "kim@b.example"
    kim.save()
    people.change_user(
        user=person("viewer", "gone"), actor=system_actor("t"), now=db_now(), is_active=False
    )

    def names(query):
        found = re.findall(
            r'/people/\d+/"><bdi>(\w+)', root.get(f"/people/{query}").content.decode()
        )
        return set(found)

    assert names("") == {"root", "kim"}
    assert names("?q=B.EXAMPLE") == {"kim"}
    assert names("?role=admin") == {"root"}
    assert names("?state=deactivated") == {"gone"}
    assert names("?q=nobody") == set()
    assert names("?role=emperor&page=x&q=%00") == {"root", "kim"}


def test_list_takes_the_same_queries_however_long(root):
    def queries():
        with CaptureQueriesContext(connection) as captured:
            html = root.get("/people/").content.decode()
        return html, [query["sql"] for query in captured.captured_queries]

    queries()  # What is counted for the navigation is kept for some seconds.
    _, few = queries()
    for n in range(60):
        person("viewer", f"p{n:02}")
    html, many = queries()

    assert len(many) == len(few), many
    assert html.count('class="list-row"') == 50
    assert "61 people, page 1 of 2" in " ".join(html.split())


def test_new_person_signs_in_with_what_is_shown_once(root, client):
    response = root.post("/people/new/", LEE, headers=DIALOG)

    password = shown_once(response.content.decode())
    lee = User.objects.get(username="lee")
    assert (lee.role, lee.must_change_password) == ("operator", True)
    assert "must be changed at the next sign-in" in page(root, lee)
    assert client.post("/sign-in/", {"username": "lee", "password": password}).status_code == 302
    entry = AuditEntry.objects.get(action="user.created")
    assert (entry.actor_name, entry.target) == ("root", "user:lee")
    assert password not in f"{entry.after}{page(root, lee)}"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"username": "kim"}, "already exists"),
        ({"username": "k k"}, "valid username"),
        ({"username": ""}, "required"),
        ({"email": "nobody"}, "valid email"),
        ({"slack_user_id": "@lee"}, "Slack member ID such as U024BE7LH"),
        ({"role": "emperor"}, "valid choice"),
        ({"time_zone": "Mars/Olympus"}, "valid choice"),
    ],
)
def test_wrong_field_is_told_beside_it_and_nobody_is_made(root, kim, wrong, message):
    response = root.post("/people/new/", {**LEE, **wrong})

    assert response.status_code == 422
    assert message in response.content.decode()
    assert User.objects.count() == 2


def test_change_is_kept_and_noted(root, kim):
    response = root.post(
        f"/people/{kim.pk}/change/",
        {"display_name": "Kim", "role": "approver", "email": "", "time_zone": "Asia/Seoul"},
    )

    kim.refresh_from_db()
    assert response["Location"] == f"/people/{kim.pk}/"
    assert (kim.role, kim.display_name, kim.time_zone) == ("approver", "Kim", "Asia/Seoul")
    assert '"approver"' in AuditEntry.objects.get(action="user.changed").after


def test_form_that_was_opened_before_gives_back_no_role_that_was_taken_meanwhile(root, kim):
    html = " ".join(root.get(f"/people/{kim.pk}/change/").content.decode().split())
    opened = dict(re.findall(r'<input type="hidden" name="(initial-\w+)" value="([^"]*)">', html))
    people.change_user(user=kim, actor=system_actor("t"), now=db_now(), role="viewer")
    form = {"display_name": "Kim", "role": "operator", "time_zone": "UTC", **opened}

    response = root.post(f"/people/{kim.pk}/change/", form)

    kim.refresh_from_db()
    assert opened["initial-role"] == "operator"
    assert response.status_code == 302
    assert (kim.display_name, kim.role) == ("Kim", "viewer")


def test_last_admin_can_not_be_demoted_or_deactivated(root):
    own = User.objects.get(username="root")

    demoted = root.post(f"/people/{own.pk}/change/", {"role": "viewer", "time_zone": "UTC"})
    deactivated = root.post(f"/people/{own.pk}/deactivate/")

    own.refresh_from_db()
    assert (demoted.status_code, deactivated.status_code) == (422, 409)
    assert "last active admin" in demoted.content.decode()
    assert (own.role, own.is_active) == ("admin", True)


def test_what_stops_is_said_before(root, kim):
    browser_of(kim)
    token_text(kim, ["switches:read"], "billing")
    row = {"kind": "person", "user": kim, "created_at": db_now()}
    target = Target.objects.create(name="Kim", **row)
    rotation = Target.objects.create(name="platform", kind="on_call", created_at=db_now())
    OnCallMember.objects.create(rotation=rotation, position=0, person=target)
    Approval.objects.create(
        kind="release", target="global:all", summary="Release global:all", reason="calm again",
        requested_by="user:kim", requester=kim, requested_at=db_now(),
    )  # fmt: skip

    html = root.get(f"/people/{kim.pk}/deactivate/", headers=DIALOG).content.decode()

    assert "1 session</b>" in html
    assert "This token stops" in html
    assert "billing" in html
    assert "the rotation platform" in html
    assert "Release global:all" in html
    assert User.objects.get(pk=kim.pk).is_active


def test_targets_that_lead_to_a_leaver_without_being_theirs_are_named_before(root, kim):
    people.change_user(
        user=kim,
        actor=system_actor("test"),
        now=db_now(),
        email="kim@b.example",
        slack_user_id="U123",
    )
    for name, row in {
        "theirs": {"kind": "person", "user": kim, "email": "kim@b.example"},
        "by-mail": {"kind": "channel", "address": "email:Kim@b.example"},
        "by-slack": {"kind": "channel", "address": "slack:U123"},
        "as-person": {"kind": "person", "slack_user_id": "U123"},
        "elsewhere": {"kind": "channel", "address": "email:lee@b.example"},
        "no-address": {"kind": "person"},
    }.items():
        Target.objects.create(name=name, created_at=db_now(), **row)

    html = root.get(f"/people/{kim.pk}/deactivate/", headers=DIALOG).content.decode()

    _, _, section = html.partition("Messages will still go to their address")
    shown_names = section.partition("</div>")[0]
    assert re.findall(r"<bdi>([^<]+)</bdi>", shown_names) == ["as-person", "by-mail", "by-slack"]


def test_who_has_no_address_is_led_to_by_no_target(root, kim):
    Target.objects.create(name="nobody-yet", kind="person", created_at=db_now())

    html = root.get(f"/people/{kim.pk}/deactivate/", headers=DIALOG).content.decode()

    assert "own address" not in html


def test_deactivating_with_an_heir_hands_the_tokens_over(root, kim):
    token_text(kim, ["switches:write"], "billing")
    lee = person("operator", "lee")
    kims = browser_of(kim)

    response = root.post(f"/people/{kim.pk}/deactivate/", {"heir": lee.pk})

    assert response.status_code == 302
    assert Token.objects.get().owner == lee
    assert kims.get("/preferences/").status_code == 302
    assert "Deactivated" in page(root, kim)


def test_heir_who_may_less_is_no_choice(root, kim):
    token_text(kim, ["switches:write"], "billing")
    viewer = person("viewer", "lee")

    response = root.post(f"/people/{kim.pk}/deactivate/", {"heir": viewer.pk})

    assert response.status_code == 422
    assert User.objects.get(pk=kim.pk).is_active


def test_activated_again_they_sign_in_anew(root, kim):
    kims = browser_of(kim)
    root.post(f"/people/{kim.pk}/deactivate/")

    root.post(f"/people/{kim.pk}/activate/")

    assert User.objects.get(pk=kim.pk).is_active
    assert kims.get("/preferences/").status_code == 302


def test_request_of_somebody_deactivated_is_marked(root, kim):
    Approval.objects.create(
        kind="release", target="global:all", summary="Release global:all", reason="calm again",
        requested_by="user:kim", requester=kim, requested_at=db_now(),
    )  # fmt: skip
    assert "since deactivated" not in root.get("/approvals/").content.decode()

    root.post(f"/people/{kim.pk}/deactivate/")

    assert "since deactivated" in root.get("/approvals/").content.decode()


def test_admin_ends_one_session_or_all(root, kim):
    browser_of(kim), browser_of(kim), browser_of(kim)
    theirs = BrowserSession.objects.filter(user=kim)

    root.post(f"/people/{kim.pk}/sessions/", {"session": theirs.first().pk})
    assert theirs.count() == 2

    root.post(f"/people/{kim.pk}/sessions/")
    assert theirs.count() == 0
    assert root.get("/preferences/").status_code == 200


def test_password_link_is_shown_once_and_noted_without_it(root, kim):
    kim.set_password("correct-horse-9")
    kim.save()

    html = root.post(f"/people/{kim.pk}/link/").content.decode()

    link = shown_once(html)
    assert link.startswith("http://testserver/")
    entry = AuditEntry.objects.get(action="user.reset_issued")
    assert link.rsplit("/", 2)[-2] not in f"{entry.after}{entry.reason}"


def test_reset_of_second_factors_ends_their_sessions(root, kim):
    kims = browser_of(kim)

    response = root.get(f"/people/{kim.pk}/factors/", headers=DIALOG)
    root.post(f"/people/{kim.pk}/factors/")

    assert "Verify in person or by phone" in response.content.decode()
    assert kims.get("/preferences/").status_code == 302
    assert AuditEntry.objects.filter(action="factor.reset", target="user:kim").exists()


PATHS = ["", "new/", "{}/", "{}/change/", "{}/deactivate/", "{}/factors/"]
POSTS = [*PATHS[1:2], *PATHS[3:], "{}/activate/", "{}/sessions/", "{}/link/"]


@pytest.mark.parametrize("role", ["viewer", "operator", "approver"])
def test_only_admins_come_here(kim, role):
    client = browser_of(person(role, "other"))
    entries = AuditEntry.objects.count()

    gets = {client.get("/people/" + path.format(kim.pk)).status_code for path in PATHS}
    posts = {client.post("/people/" + path.format(kim.pk), LEE).status_code for path in POSTS}

    assert (gets, posts) == ({403}, {403})
    assert AuditEntry.objects.count() == entries
    assert "/people/" not in client.get("/preferences/").content.decode()


def test_whoever_has_not_lately_shown_who_they_are_is_asked_first(root, kim):
    session = root.session
    session[confirmation.KEY] = 0
    session.save()

    for path in POSTS:
        response = root.post("/people/" + path.format(kim.pk), LEE)
        assert response["Location"].startswith("/confirm/?next="), path
    assert root.get(f"/people/{kim.pk}/").status_code == 200
    kim.refresh_from_db()
    assert (kim.role, kim.is_active) == ("operator", True)
    refused = root.patch(
        f"/api/v1/users/{kim.pk}/", {"role": "admin"}, content_type="application/json"
    )
    assert (refused.status_code, "confirm_url" in refused.json()) == (403, True)


def test_person_nobody_has_is_not_found(root):
    assert root.get("/people/999999/").status_code == 404
    assert root.post("/people/999999/activate/").status_code == 404


def test_page_says_that_a_person_comes_from_the_directory(root, kim):
    assert "provisioned by SCIM" not in page(root, kim)
    now = db_now()
    attributes = {"userName": "kim@example.com"}
    DirectoryUser.objects.create(user=kim, attributes=attributes, created_at=now, changed_at=now)

    assert "provisioned by SCIM as <bdi>kim@example.com</bdi>" in " ".join(page(root, kim).split())
