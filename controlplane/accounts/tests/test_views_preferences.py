"""A person's own page: name, time zone, password, theme."""

import pytest

from controlplane.accounts.models.people import User
from controlplane.core.audit.models import AuditEntry
from controlplane.core.http.tests.callers import signed_in

pytestmark = pytest.mark.django_db
PASSWORD, NEW = "correct-horse-9", "another-fine-secret-4"


@pytest.fixture
def kim():
    return User.objects.create_user("kim", PASSWORD, role="operator")


@pytest.fixture
def browser(kim):
    return signed_in(kim).client


def test_time_zone_and_name_are_kept_and_noted(browser, kim):
    response = browser.post(
        "/preferences/", {"display_name": "Kim Min-jun", "time_zone": "Asia/Seoul"}, follow=True
    )

    kim.refresh_from_db()
    assert (kim.display_name, kim.time_zone) == ("Kim Min-jun", "Asia/Seoul")
    html = response.content.decode()
    assert "Preferences saved." in html
    assert "KST" in html
    assert AuditEntry.objects.get().action == "user.changed"


def test_unknown_time_zone_is_told_and_changes_nothing(browser, kim):
    response = browser.post("/preferences/", {"display_name": "K", "time_zone": "Mars/Olympus"})

    assert response.status_code == 422
    kim.refresh_from_db()
    assert (kim.display_name, kim.time_zone) == ("", "UTC")


def test_nobody_changes_their_own_role(browser, kim):
    browser.post("/preferences/", {"time_zone": "UTC", "role": "admin", "is_active": ""})

    kim.refresh_from_db()
    assert (kim.role, kim.is_active) == ("operator", True)


def passwords(old, new):
    return {"old_password": old, "new_password1": new, "new_password2": new}


def test_new_password_is_set_ends_other_sessions_and_keeps_this_one(browser, kim):
    elsewhere = signed_in(kim).client

    response = browser.post("/preferences/", passwords(PASSWORD, NEW))

    kim.refresh_from_db()
    assert response.status_code == 302
    assert kim.check_password(NEW)
    assert browser.get("/preferences/").status_code == 200
    assert elsewhere.get("/preferences/").status_code == 302
    entry = AuditEntry.objects.get(action="user.password_set")
    assert NEW not in f"{entry.before}{entry.after}{entry.reason}"


@pytest.mark.parametrize(("old", "new"), [("wrong", NEW), (PASSWORD, "short"), (PASSWORD, "")])
def test_wrong_or_weak_password_changes_nothing(browser, kim, old, new):
    response = browser.post("/preferences/", passwords(old, new))

    kim.refresh_from_db()
    assert response.status_code == 422
    assert kim.check_password(PASSWORD)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_theme_is_remembered_and_there_at_the_first_paint(browser, theme):
    response = browser.post("/theme/", {"theme": theme, "next": "/audit/"})

    assert response["Location"] == "/audit/"
    assert f'data-theme="{theme}"' in browser.get("/audit/").content.decode()


def test_theme_of_the_system_is_the_absence_of_one(browser):
    browser.post("/theme/", {"theme": "dark"})
    browser.post("/theme/", {"theme": "system"})

    assert "data-theme=" not in browser.get("/audit/").content.decode().split("<body", 1)[0]


def test_odd_theme_cookie_is_not_shown(browser):
    browser.cookies["theme"] = '"><script>alert(1)</script>'

    assert "alert(1)" not in browser.get("/audit/").content.decode()


def test_theme_never_leads_away(browser):
    response = browser.post("/theme/", {"theme": "dark", "next": "https://evil.example/"})

    assert response["Location"] == "/"


def test_who_has_no_password_is_not_asked_for_the_present_one(browser, kim):
    kim.set_unusable_password()
    kim.save()

    html = signed_in(kim).client.get("/preferences/").content.decode()

    assert "You have no password" in html
    assert "old_password" not in html


def test_time_zone_that_no_server_knows_any_more_can_be_changed(browser, kim):
    User.objects.filter(pk=kim.pk).update(time_zone="US/Pacific-New")

    assert browser.get("/preferences/").status_code == 200
    assert browser.post("/preferences/", {"time_zone": "Asia/Seoul"}).status_code == 302
    kim.refresh_from_db()
    assert kim.time_zone == "Asia/Seoul"
