"""Emergency code on the security page and on a person's page."""

import re
from dataclasses import replace

import pytest

from controlplane.accounts.emergency_codes import codes, services
from controlplane.accounts.models import EmergencyCode
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.http import confirmation
from controlplane.core.http.tests.callers import browser_of, person
from controlplane.core.outbox.models import OutboxMessage

from .people import kim

pytestmark = pytest.mark.django_db
PAGE = "/preferences/security/"
CREATE = "/preferences/emergency-code/"
REVOKE = "/preferences/emergency-code/revoke/"


def read(browser, path=PAGE):
    return " ".join(browser.get(path).content.decode().split())


def find_code(response):
    return re.search(r"<code>([A-Z2-7]{5}(?:-[A-Z2-7]{5}){4})</code>", response.content.decode())[1]


def expire_confirmation(browser):
    session = browser.session
    session[confirmation.KEY] = 0
    session.save()


def test_created_code_is_shown_once_and_works():
    browser = browser_of(kim())
    assert "Create code" in read(browser)

    response = browser.post(CREATE)

    code = find_code(response)
    row = EmergencyCode.objects.get()
    assert codes.is_correct(code, bytes.fromhex(row.salt), bytes.fromhex(row.digest))
    assert "no-store" in response["Cache-Control"]
    assert "http://testserver/emergency/" in response.content.decode()
    shown = read(browser)
    assert code not in shown
    assert "never used" in shown
    assert "Replace code" in shown


def test_code_is_in_no_log_audit_entry_message_or_session(caplog, capfd):
    browser = browser_of(kim(email="kim@example.org"))

    code = find_code(browser.post(CREATE))

    parts = {code, code.replace("-", ""), *code.split("-")}
    captured = "".join(capfd.readouterr())
    kept = [
        caplog.text,
        captured,
        str(AuditEntry.objects.values()),
        str(OutboxMessage.objects.values()),
        str(EmergencyCode.objects.values()),
        str(dict(browser.session)),
    ]
    assert AuditEntry.objects.get().action == "emergency_code.created"
    assert [part for part in parts if any(part in text for text in kept)] == []


def test_replaced_code_stops_working():
    browser = browser_of(kim())
    first = find_code(browser.post(CREATE))

    second = find_code(browser.post(CREATE))

    row = EmergencyCode.objects.current().get()
    salt, digest = bytes.fromhex(row.salt), bytes.fromhex(row.digest)
    assert codes.is_correct(second, salt, digest)
    assert not codes.is_correct(first, salt, digest)


def test_revoked_code_is_gone_from_the_page():
    browser = browser_of(kim())
    browser.post(CREATE)

    response = browser.post(REVOKE)

    assert response["Location"] == PAGE
    shown = read(browser)
    assert "Emergency code revoked." in shown
    assert "Create code" in shown
    assert not EmergencyCode.objects.current().exists()


def test_used_code_shows_its_last_use():
    user = kim()
    browser = browser_of(user)
    browser.post(CREATE)

    services.record_use(user.pk, db_now())

    assert "last used" in read(browser)


@pytest.mark.parametrize("path", [CREATE, REVOKE])
def test_who_signed_in_long_ago_confirms_first(path):
    user = kim()
    browser = browser_of(user)
    browser.post(CREATE)
    before = EmergencyCode.objects.get()
    expire_confirmation(browser)

    response = browser.post(path)

    assert response["Location"] == "/confirm/?next=%2Fpreferences%2Fsecurity%2F"
    assert services.get_current(user) == before


def test_viewer_is_offered_no_code_and_gets_none():
    browser = browser_of(kim(role="viewer"))

    assert "Emergency code" not in read(browser)
    assert browser.post(CREATE).status_code == 403
    assert not EmergencyCode.objects.exists()


def test_person_without_a_required_second_factor_gets_no_code(settings):
    settings.ENTRY = replace(settings.ENTRY, second_factor_roles=frozenset({"operator"}))
    browser = browser_of(kim())

    response = browser.post(CREATE)

    assert response["Location"] == PAGE
    assert not EmergencyCode.objects.exists()


def test_code_is_not_changed_by_a_link():
    user = kim()
    services.create_code(user=user, actor=user.as_actor(), now=db_now())
    before = EmergencyCode.objects.get()
    browser = browser_of(user)

    assert browser.get(CREATE)["Location"] == PAGE
    assert browser.get(REVOKE).status_code == 405

    assert services.get_current(user) == before


def test_admin_sees_and_revokes_the_code_of_a_person():
    user = kim()
    services.create_code(user=user, actor=user.as_actor(), now=db_now())
    admin = browser_of(person("admin", "root"))
    path = f"/people/{user.pk}/"
    assert "Revoke emergency code" in read(admin, path)

    response = admin.post(f"{path}emergency-code/revoke/")

    assert response["Location"] == path
    assert services.get_current(user) is None
    assert "Revoke emergency code" not in read(admin, path)
    entry = AuditEntry.objects.get(action="emergency_code.revoked")
    assert (entry.actor_name, entry.target) == ("root", "user:kim")


def test_admin_confirms_before_revoking_the_code_of_a_person():
    user = kim()
    services.create_code(user=user, actor=user.as_actor(), now=db_now())
    admin = browser_of(person("admin", "root"))
    expire_confirmation(admin)

    response = admin.post(f"/people/{user.pk}/emergency-code/revoke/")

    assert response["Location"].startswith("/confirm/")
    assert services.get_current(user)


def test_page_to_deactivate_a_person_names_the_code_that_ends():
    user = kim()
    admin = browser_of(person("admin", "root"))
    path = f"/people/{user.pk}/deactivate/"
    assert "Their emergency code" not in read(admin, path)

    services.create_code(user=user, actor=user.as_actor(), now=db_now())

    assert "Their emergency code is revoked." in read(admin, path)
