"""The deliveries page: messages, states and errors."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from controlplane.core.http.tests.callers import as_role, person, signed_in
from controlplane.core.outbox.models import OutboxMessage
from controlplane.notify.delivery.views import PAGE_SIZE

from .message_samples import create_message, hook, somebody

pytestmark = pytest.mark.django_db


@pytest.fixture
def operator():
    return signed_in(person("operator", "kim")).client


def html(client, path="/deliveries/"):
    response = client.get(path)
    assert response.status_code == 200, response.content
    return response.content.decode()


def count_deliveries(text):
    return text.count('class="delivery"')


def test_nobody_sees_it_without_signing_in(client):
    message = create_message()

    for path in ("/deliveries/", f"/deliveries/{message.pk}/"):
        assert client.get(path).headers["Location"].startswith("/sign-in/")
    assert client.post(f"/deliveries/{message.pk}/retry/").status_code == 302


def test_without_messages_it_says_so(operator):
    assert "No recipient is configured: nobody is notified" in html(operator)
    assert "No failed messages" in html(operator, "/deliveries/?state=failed")


def test_a_message_is_told_with_state_destination_and_attempts(operator):
    pager = hook()
    create_message("failed", f"webhook:{pager.pk}", error="HTTP 404 from the receiver")

    text = html(operator)

    for part in ("pager (webhook)", "segment:finance ENGAGED", "HTTP 404 from the receiver"):
        assert part in text
    for part in ("1 failed", "Unknown", "Not sent", "1.50 s", "결제 이중 청구"):
        assert part in text
    assert "S3CRET" not in text


def test_a_person_sees_addresses_of_people(operator):
    somebody("lee", email="lee@example.org")
    create_message("sent", "email:lee@example.org")

    text = html(operator)

    assert "lee (e-mail)" in text
    assert "lee@example.org" in text


def test_filters_are_those_of_the_api_and_a_bad_one_is_told(operator):
    create_message("failed")
    create_message("sent", event="switch.released")

    assert count_deliveries(html(operator)) == 2
    assert count_deliveries(html(operator, "/deliveries/?state=failed")) == 1
    assert count_deliveries(html(operator, "/deliveries/?event=switch.released")) == 1
    assert count_deliveries(html(operator, "/deliveries/?severity=critical")) == 0
    assert count_deliveries(html(operator, "/deliveries/?destination=slack&state=sent")) == 1
    odd = html(operator, "/deliveries/?state=lost")
    assert count_deliveries(odd) == 2
    assert "This filter was ignored" in odd


def test_pages_hold_while_messages_arrive(operator):
    expected = [create_message(outcomes=[]).pk for _ in range(PAGE_SIZE + 3)][::-1]

    first = html(operator)
    create_message()
    older = re.search(r'href="([^"]*before=\d+[^"]*)"', first)[1].replace("&amp;", "&")
    second = html(operator, f"/deliveries/{older}")

    ids = [int(pk) for pk in re.findall(r'href="/deliveries/(\d+)/"', first + second)]
    assert ids == expected


def test_a_failed_message_can_be_retried_by_an_operator(operator):
    message = create_message("failed")

    assert f'action="/deliveries/{message.pk}/retry/"' in html(operator)
    response = operator.post(f"/deliveries/{message.pk}/retry/")

    assert response.headers["Location"] == f"/deliveries/{message.pk}/"
    assert OutboxMessage.objects.get().state == "pending"
    again = operator.post(f"/deliveries/{message.pk}/retry/")
    assert again.status_code == 409
    assert "has not failed" in again.content.decode()


def test_all_that_failed_somewhere_can_be_retried_at_once(operator):
    for _ in range(3):
        create_message("failed")
    create_message("failed", "slack:C024BE91L")

    assert "3 failed" in html(operator)
    operator.post("/deliveries/retry/", {"destination": "slack"})

    assert OutboxMessage.objects.filter(state="pending").count() == 3


def test_a_viewer_gets_no_buttons_and_no_way_around():
    message = create_message("failed")
    viewer = as_role("viewer").client

    assert "/retry/" not in html(viewer)
    assert viewer.post(f"/deliveries/{message.pk}/retry/").status_code == 403
    assert viewer.post("/deliveries/retry/", {"destination": "slack"}).status_code == 403
    assert OutboxMessage.objects.get().state == "failed"


def test_reading_changes_nothing(operator):
    message = create_message("failed")

    for path in (f"/deliveries/{message.pk}/retry/", "/deliveries/retry/"):
        assert operator.get(path).status_code == 405
    assert OutboxMessage.objects.get().state == "failed"


def test_one_message_has_a_page_of_its_own(operator):
    message = create_message("pending", outcomes=["started"])

    text = html(operator, f"/deliveries/{message.pk}/")

    assert f"Message {message.pk}" in text
    assert "Unknown" in text
    assert operator.get("/deliveries/999999/").status_code == 404


def test_markup_in_facts_and_errors_stays_text(operator):
    facts = {"switch": "<b>x</b>", "reason": "<script>alert(1)</script>", "path": '/x"><i>'}
    create_message("failed", error="<i>500</i>", facts=facts)

    text = html(operator)

    assert "<script>alert" not in text
    assert "<b>x</b>" not in text
    assert "<i>" not in text


@pytest.mark.parametrize(
    ("path", "label"),
    [("/ramps/3/", "Open ramp"), ("/jobs/?kind=ramp", "Open jobs"), ("/new/page/", "Open page")],
)
def test_link_names_the_page_it_leads_to(operator, path, label):
    create_message(facts={"path": path})

    assert f'href="{path}">{label}</a>' in html(operator)


@pytest.mark.parametrize(
    "path",
    ["javascript:alert(1)", "https://evil.example/", "//evil.example/", "/\\\\evil.example/"],
)
def test_a_link_leads_to_the_console_and_nowhere_else(operator, path):
    create_message(facts={"path": path})

    assert f'href="{path}"' not in html(operator)


def test_the_page_asks_the_database_as_often_for_many_messages_as_for_one(operator):
    create_message("failed", "email:p@example.org")
    html(operator)  # What every page counts, and keeps for a few seconds.
    with CaptureQueriesContext(connection) as for_one:
        html(operator)
    for number in range(PAGE_SIZE):
        create_message("failed", f"email:p{number}@example.org")

    with CaptureQueriesContext(connection) as for_many:
        html(operator)

    assert len(for_many) <= len(for_one) + 2


def test_a_superseded_message_is_shown_as_such_and_can_be_filtered(operator):
    create_message("superseded", "slack", error="not sent: message 9 has the newer state")

    everything = html(operator)
    narrowed = html(operator, "/deliveries/?state=superseded")

    for text in (everything, narrowed):
        assert count_deliveries(text) == 1
        assert "<span>Superseded</span>" in text
        assert "not sent: message 9 has the newer state" in text


@pytest.mark.parametrize(
    ("subject", "shown"),
    [("dependency:core->oracle", "core → oracle"), ("segment:finance", "segment:finance")],
)
def test_subject_of_a_message_is_named_as_screens_name_it(operator, subject, shown):
    create_message(subject=subject)

    assert f'about <span class="mono">{shown}</span>' in html(operator)
