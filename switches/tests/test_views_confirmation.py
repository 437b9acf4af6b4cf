"""Confirmation of one's identity before actions on the global switch."""

from datetime import timedelta

import pytest
from django.conf import settings
from django.core.management import call_command
from django.test import Client

from controlplane.accounts.authentication.tests.people import (
    PASSWORD,
    code,
    first_step,
    kim,
    with_app,
)
from controlplane.core.approvals.models import Approval
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.http import confirmation
from controlplane.core.http.tests.callers import Api, browser_of, person, with_token
from switches.ramps.tests.ramp_helpers import run_tick, start_ramp
from switches.tests.browsers import DIALOG, REASON, SAFE_NOW, engaged

pytestmark = pytest.mark.django_db
ENGAGE = "/switches/engage/?scope=global&key=all"
MINUTES = 60


def aged(client, seconds):
    """Return the browser of a person whose last confirmation was so long ago."""
    session = client.session
    session[confirmation.KEY] -= seconds
    session.save()
    return client


@pytest.fixture
def limit():
    return settings.ENTRY.confirm_minutes * MINUTES


@pytest.fixture
def browser(limit):
    return aged(browser_of(kim("approver")), limit + 1)


def confirm(client, **more):
    return client.post("/confirm/", {"next": ENGAGE, **more})


def test_signing_in_counts(client, limit):
    kim()
    first_step(client)

    assert client.get(ENGAGE).status_code == 200
    assert aged(client, limit + 1).get(ENGAGE).status_code == 302


def test_form_for_everything_opens_after_confirming(browser):
    redirected = browser.get(ENGAGE)
    response = confirm(browser, password=PASSWORD)

    assert (
        redirected["Location"]
        == "/confirm/?next=%2Fswitches%2Fengage%2F%3Fscope%3Dglobal%26key%3Dall"
    )
    assert response["Location"] == ENGAGE
    assert browser.get(ENGAGE).status_code == 200
    assert AuditEntry.objects.get().action == "session.confirmed"


def test_in_the_dialog_it_is_asked_in_the_dialog(browser):
    response = browser.get(ENGAGE, headers=DIALOG, follow=True)

    html = response.content.decode()
    assert 'hx-target="#dialog-body"' in html
    assert "<html" not in html


def test_what_reaches_less_is_never_asked(browser):
    assert browser.get("/switches/engage/?scope=segment&key=finance").status_code == 200


def test_what_was_typed_before_the_time_was_up_is_still_taken(browser, limit):
    browser = aged(browser_of(person("operator")), limit + 9 * MINUTES)
    form = {"scope": "global", "reason": REASON, "how_long": "24h", "confirm": "global"}

    assert browser.post("/switches/engage/", form)["Location"] == "/switches/global/all/"


def test_what_is_sent_long_after_is_asked_and_keeps_its_reason(browser, limit):
    aged(browser, 10 * MINUTES)
    form = {"scope": "global", "reason": REASON, "how_long": "24h", "confirm": "global"}

    response = browser.post("/switches/engage/", form)

    assert "reason%3DOpenAI" in response["Location"]
    assert not AuditEntry.objects.exists()


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("engage", {"reason": REASON, "expires_in": "24h"}),
        ("extend", {"reason": REASON, "expires_in": "permanent"}),
        ("release", {"justification": SAFE_NOW}),
    ],
)
def test_api_says_where_to_confirm(browser, path, body):
    aged(browser, 10 * MINUTES)

    response = Api(browser).post(f"/switches/global/all/{path}", body)

    assert response.status_code == 403
    problem = response.json()
    assert problem["type"] == "urn:switchgear:problem:confirm-first"
    assert problem["confirm_url"].startswith("/confirm/?next=")


def test_extending_everything_for_a_day_is_not_asked(browser):
    engaged("global:all", by=person("operator", "ayse"), expires_in="1h")
    aged(browser, 10 * MINUTES)

    response = Api(browser).post(
        "/switches/global/all/extend", {"reason": REASON, "expires_in": "24h"}
    )

    assert response.status_code == 200


def test_tokens_are_never_asked():
    api = with_token("switches:write")

    assert api.engage("global:all").status_code == 200


def test_global_release_is_approved_by_who_confirmed(browser, limit):
    engaged("global:all", by=person("operator", "ayse"))
    response = Api(browser_of(person("operator", "lee"))).post(
        "/switches/global/all/release", {"justification": SAFE_NOW}
    )
    approval = response.json()["approval"]["id"]
    aged(browser, 10 * MINUTES)

    by_page = browser.post(f"/approvals/{approval}/approve/")
    by_api = Api(browser).post(f"/approvals/{approval}/approve", {})
    confirm(browser, password=PASSWORD)

    assert by_page["Location"] == "/confirm/?next=%2Fapprovals%2F"
    assert by_api.status_code == 403
    assert Api(browser).post(f"/approvals/{approval}/approve", {}).status_code == 200


def test_wrong_password_confirms_nothing_is_noted_and_locks_out(browser):
    for _ in range(settings.AXES_FAILURE_LIMIT - 1):
        response = confirm(browser, password="wrong")

    assert response.status_code == 422
    assert confirm(browser, password="wrong").status_code == 429
    assert confirm(browser, password=PASSWORD).status_code == 429
    failed = AuditEntry.objects.filter(action="session.failed")
    assert failed.count() == settings.AXES_FAILURE_LIMIT
    assert browser.get(ENGAGE).status_code == 302


@pytest.mark.parametrize("typed", ["kim", " kim", "\N{NO-BREAK SPACE}kim"])
def test_failed_sign_ins_of_strangers_keep_nobody_from_confirming(browser, client, typed):
    for _ in range(settings.AXES_FAILURE_LIMIT):
        locked_out = first_step(client, username=typed, password="wrong")

    response = confirm(browser, password=PASSWORD)

    assert locked_out.status_code == 429
    assert response["Location"] == ENGAGE


def test_confirming_forgets_what_failed_before(browser):
    for _ in range(2):
        for _ in range(settings.AXES_FAILURE_LIMIT - 1):
            confirm(browser, password="wrong")

        assert confirm(browser, password=PASSWORD).status_code == 302


def test_unlocking_a_person_lets_them_confirm_again(browser):
    for _ in range(settings.AXES_FAILURE_LIMIT):
        confirm(browser, password="wrong")

    call_command("person", "unlock", "kim")

    assert confirm(browser, password=PASSWORD).status_code == 302


def test_code_of_the_app_confirms(limit):
    user = kim()
    secret, _ = with_app(user)
    browser = aged(browser_of(user), limit + 1)

    assert confirm(browser, code=code(secret))["Location"] == ENGAGE
    assert browser.get(ENGAGE).status_code == 200


def test_password_of_somebody_with_an_app_confirms_nothing(limit):
    user = kim()
    with_app(user)
    browser = aged(browser_of(user), limit + 1)

    page = browser.get("/confirm/").content.decode()
    response = confirm(browser, password=PASSWORD)

    assert 'name="password"' not in page
    assert "recovery code" in page
    assert response.status_code == 422
    assert browser.get(ENGAGE).status_code == 302


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example", "javascript:x", ""])
def test_confirming_leads_nowhere_else(browser, target):
    assert confirm(browser, password=PASSWORD, next=target)["Location"] == "/"


def test_confirming_takes_its_csrf_token(limit):
    browser = browser_of(kim(), csrf=True)

    assert confirm(browser, password=PASSWORD).status_code == 403


def test_nobody_is_asked_who_they_are_before_signing_in():
    assert Client().get("/confirm/")["Location"].startswith("/sign-in/")


@pytest.mark.parametrize("kept", ["soon", None, -1, True])
def test_odd_marks_in_a_session_confirm_nothing(browser, kept):
    session = browser.session
    session[confirmation.KEY] = kept
    session.save()

    assert browser.get(ENGAGE).status_code == 302


def test_ramp_of_everything_goes_on_by_who_confirmed(browser):
    now = db_now()
    plan = [{"percent": 5, "dwell_seconds": 60, "gates": [{"type": "manual"}]}, {"percent": 100}]
    ramp = start_ramp(now, plan, switch="global:all")
    run_tick(now + timedelta(seconds=60))
    gate = Approval.objects.get(kind="ramp_gate").pk
    aged(browser, 10 * MINUTES)

    pages = [
        browser.get(f"/ramps/{ramp.pk}/advance/"),
        browser.post(f"/ramps/{ramp.pk}/advance/", {"reason": SAFE_NOW}),
        browser.post(f"/approvals/{gate}/approve/"),
    ]
    api = Api(browser)
    by_api = [
        api.post(f"/ramps/{ramp.pk}/advance", {"reason": SAFE_NOW}),
        api.post(f"/approvals/{gate}/approve", {}),
    ]

    assert all(page["Location"].startswith("/confirm/?next=") for page in pages)
    assert [response.status_code for response in by_api] == [403, 403]
    confirm(browser, password=PASSWORD)
    assert api.post(f"/ramps/{ramp.pk}/advance", {"reason": SAFE_NOW}).status_code == 200


def test_ramp_of_everything_is_stopped_without_being_asked(browser, limit):
    ramp = start_ramp(
        db_now(), [{"percent": 5, "dwell_seconds": 60}, {"percent": 100}], switch="global:all"
    )
    aged(browser, 10 * MINUTES)

    response = Api(browser).post(f"/ramps/{ramp.pk}/abort", {"reason": REASON})

    assert response.status_code == 200
