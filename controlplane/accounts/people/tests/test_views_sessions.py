"""The sessions page: a person's own sessions, and ending them."""

from datetime import timedelta

import pytest
from django.conf import settings
from django.utils import timezone

from controlplane.accounts.models.people import BrowserSession
from controlplane.core.audit.models import AuditEntry
from controlplane.core.http.requests import session_digest
from controlplane.core.http.tests.callers import browser_of, person

pytestmark = pytest.mark.django_db
PAGE = "/preferences/sessions/"
END = "/preferences/sessions/end/"
PHONE = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like"
    " Gecko) Version/18.0 Mobile/15E148 Safari/604.1"
)


@pytest.fixture
def kim():
    return person("viewer", "kim")


def key_of(client):
    return client.cookies[settings.SESSION_COOKIE_NAME].value


def is_in(client):
    return client.get("/preferences/").status_code == 200


def test_page_shows_each_session_and_which_is_this_one(kim):
    here, phone = browser_of(kim), browser_of(kim)
    BrowserSession.objects.filter(pk=session_digest(key_of(phone))).update(
        user_agent=PHONE, ip="203.0.113.7", method="passkey"
    )
    browser_of(person("operator", "lee"))

    html = " ".join(here.get(PAGE).content.decode().split())

    assert "2 sessions" in html
    assert html.count("this browser") == 1
    assert "Safari on iPhone" in html
    assert "203.0.113.7" in html
    assert "by passkey" in html
    assert key_of(here) not in html


def test_session_that_is_ended_is_out_at_once_and_this_one_stays(kim):
    here, other = browser_of(kim), browser_of(kim)

    response = here.post(END, {"session": session_digest(key_of(other))})

    assert response["Location"] == PAGE
    assert (is_in(here), is_in(other)) == (True, False)
    entry = AuditEntry.objects.get(action="session.revoked")
    assert (entry.actor_name, entry.target) == ("kim", "user:kim")


def test_all_others_end_together(kim):
    here, others = browser_of(kim), [browser_of(kim) for _ in range(3)]

    here.post(END, {"others": "1"})

    assert is_in(here)
    assert not any(is_in(each) for each in others)
    assert AuditEntry.objects.get(action="session.revoked").before == '{"sessions":3}'


def test_nobody_ends_a_session_of_somebody_else(kim):
    here, lee = browser_of(person("admin", "root")), browser_of(kim)

    response = here.post(END, {"session": session_digest(key_of(lee))})

    assert response.status_code == 404
    assert is_in(lee)


@pytest.mark.parametrize("session", ["", "unheard-of", "a\x00b", "x" * 5000])
def test_session_nobody_has_is_told(kim, session):
    assert browser_of(kim).post(END, {"session": session}).status_code == 404


def test_list_has_an_end(kim):
    here = browser_of(kim)
    row = BrowserSession.objects.get()
    BrowserSession.objects.bulk_create(
        BrowserSession(
            session_key=session_digest(str(n)),
            user=kim,
            session_data="",
            started_at=row.started_at,
            last_seen_at=row.last_seen_at,
            expire_date=row.expire_date,
        )
        for n in range(60)
    )

    html = here.get(PAGE).content.decode()

    assert "61 sessions" in html
    assert "The 50 most recently used" in html


def test_end_that_nothing_puts_off_is_told_as_such(kim):
    here, old = browser_of(kim), browser_of(kim)
    began = timezone.now() - timedelta(minutes=settings.ENTRY.session_minutes - 5)
    ends = began + timedelta(minutes=settings.ENTRY.session_minutes)
    row = BrowserSession.objects.filter(pk=session_digest(key_of(old)))
    row.update(started_at=began, expire_date=ends)

    html = here.get(PAGE).content.decode()

    assert html.count("· expires in") == 2
    assert html.count("unless used") == 1
