"""The guide on the switchboard and its page: shown, ticked, hidden, gone."""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import DatabaseError, connection
from django.test.utils import CaptureQueriesContext

from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.first_steps import services
from controlplane.core.first_steps.models import FirstStepsState
from controlplane.core.first_steps.tests.test_evidence import add_instance
from controlplane.core.page_registry import FIRST_STEPS, FirstStepEvidence
from switches.tests.browsers import Tags, browser_as, engaged, page, text
from switches.tests.instances import report_checks

pytestmark = pytest.mark.django_db
PAGE = "/first-steps/"


@pytest.fixture
def all_done():
    """Evidence for each step."""
    found = FirstStepEvidence("Seen", db_now(), "/")
    original = dict(FIRST_STEPS)
    FIRST_STEPS.unregister(*original)
    FIRST_STEPS.register(
        *(replace(step, find_evidence=lambda _now: found) for step in original.values())
    )
    yield
    FIRST_STEPS.unregister(*original)
    FIRST_STEPS.register(*original.values())


@pytest.fixture
def unreadable():
    """A step whose table can't be read."""

    def fail(_now):
        raise DatabaseError("canceling statement due to statement timeout")

    original = FIRST_STEPS["service"]
    FIRST_STEPS.unregister("service")
    FIRST_STEPS.register(replace(original, find_evidence=fail))
    yield
    FIRST_STEPS.unregister("service")
    FIRST_STEPS.register(original)


def get_page(role="viewer", path="/"):
    return page(browser_as(role).get(path))


def opened(html):
    return [
        attributes["id"]
        for tag, attributes in Tags(html).found
        if tag == "details" and "open" in attributes
    ]


def test_empty_console_shows_four_steps_with_the_first_open():
    html = get_page()

    assert "0 of 4 done" in html
    assert opened(html) == ["step-service-next"]
    assert "export SWITCHGEAR_URL=http://testserver" in html
    assert "No service has reported in the last 24 hours." in text(html)


def test_step_with_evidence_is_ticked_and_the_next_one_opens():
    add_instance(db_now(), "core/a1")

    html = get_page()

    assert "1 of 4 done" in html
    assert "core last reported" in html
    assert opened(html) == ["step-switch-next"]


def test_steps_come_after_the_switches_once_there_are_some():
    engaged("feature:chat")

    html = get_page()

    assert html.index('id="first-steps"') > html.index('data-switch="feature:chat"')


@pytest.mark.parametrize(
    ("role", "present", "absent"),
    [
        ("viewer", ["Ask an admin for a token", "Operators engage switches."], ["/tokens/new/"]),
        ("operator", ["Ask an admin for a token", "Engage feature:chat"], ["/tokens/new/"]),
        ("admin", ["/tokens/new/", "Engage feature:chat", "Add a channel"], ["Ask an admin"]),
    ],
)
def test_each_role_sees_what_it_may_do_and_who_does_the_rest(role, present, absent):
    html = get_page(role, PAGE)

    assert all(one in html for one in present)
    assert not any(one in html for one in absent)


@pytest.mark.parametrize(
    ("minutes", "said"),
    [
        (5, "Services checked feature:mail in the last hour (last checked by core 5 min ago)."),
        (61, "Engage a feature that users don't see yet."),
    ],
)
def test_feature_that_is_no_longer_checked_is_not_said_to_be(minutes, said):
    report_checks("core/a1", "feature:mail", at=db_now(), per_second=5)
    report_checks("core/a1", "feature:mail", at=db_now() - timedelta(minutes=minutes))

    assert said in text(get_page("operator", PAGE))


def test_busiest_checked_feature_is_suggested_and_no_segment():
    now = db_now()
    report_checks("core/a1", "feature:mail", at=now, per_second=5)
    report_checks("core/a3", "feature:export", at=now, per_second=1)
    report_checks("core/a2", "segment:legal", "global:all", at=now, per_second=50)

    html = get_page("operator", PAGE)

    assert "Services checked feature:mail in the last hour (5.0/s by core, 0 s ago)." in text(html)
    assert "/api/v1/switches/feature/mail/engage" in html
    assert "feature:chat" not in html


def test_complete_guide_is_gone_and_looks_for_nothing_again(all_done):
    browser = browser_as("viewer")
    assert 'id="first-steps"' not in page(browser.get("/"))
    assert FirstStepsState.objects.get().completed_at is not None

    with CaptureQueriesContext(connection) as queries:
        browser.get("/")

    assert not any("core_outboxmessage" in one["sql"] for one in queries)
    assert "All steps were done" in page(browser.get(PAGE))


def test_evidence_is_read_once_in_five_seconds(django_assert_num_queries):
    now = db_now()
    services.read_progress(now, head=1)
    add_instance(now, "core/a1")

    with django_assert_num_queries(0):
        found = services.read_progress(now + services.PROGRESS_AGE, head=1)

    assert found[0].state == services.OPEN
    assert services.read_progress(now, head=2)[0].state == services.DONE


def test_evidence_is_read_again_after_five_seconds():
    now = db_now()
    services.read_progress(now)
    add_instance(now, "core/a1")

    found = services.read_progress(now + services.PROGRESS_AGE * 1.1)

    assert found[0].state == services.DONE


def test_step_that_cannot_be_read_is_unknown(unreadable):
    html = text(get_page())

    assert "Unknown" in html
    assert "The database did not answer." in html
    assert "0 of 4 done" in html


def test_operator_hides_the_guide_and_shows_it_again():
    operator = browser_as("operator")

    operator.post("/first-steps/hide/")

    assert 'id="first-steps"' not in page(operator.get("/"))
    assert "hid the steps from the switchboard" in text(page(operator.get(PAGE)))
    operator.post("/first-steps/show/")
    assert 'id="first-steps"' in page(operator.get("/"))
    actions = AuditEntry.objects.order_by("id").values_list("action", flat=True)
    assert list(actions) == ["first_steps.hidden", "first_steps.shown"]


def test_viewer_hides_nothing():
    viewer = browser_as("viewer")

    assert viewer.post("/first-steps/hide/").status_code == 403
    assert not services.read_state().is_over
    assert "Hide from the switchboard" not in page(viewer.get("/"))
