"""The page of threshold rules and its forms."""

import pytest

from slo.models import Alert, ThresholdRule
from slo.thresholds import statuses
from switches.tests.browsers import Tags, browser_as, page, text

from .fake_metric import NOW, SECOND, register_metric, rule, run_tick

pytestmark = pytest.mark.django_db

PAGE = "/slos/thresholds/"
NEW = "/slos/thresholds/new/?metric=timeout_rate"
EDIT = "/slos/thresholds/timeout_rate/edit/"
FORM = {
    "name": "core-timeouts",
    "comparison": ">",
    "value": "2.5",
    "window": "10m",
    "min_events": "1,000",
    "severity": "info",
    "enabled": "on",
    "reason": "one percent is normal here",
}


@pytest.fixture
def admin():
    return browser_as("admin")


def is_sent(its):
    return its.get("type") not in ("radio", "checkbox") or "checked" in its


def form_values(html):
    """Return what a browser sends if nothing was touched."""
    sent, chosen = {}, ""
    for tag, its in Tags(html).found:
        if tag == "select":
            chosen = its["name"]
        elif tag == "option" and chosen and "selected" in its:
            sent[chosen] = its["value"]
        elif tag == "input" and its.get("name") and is_sent(its):
            sent[its["name"]] = its.get("value") or ""
    return sent


def test_the_page_shows_each_rule_and_how_it_stands(admin):
    with register_metric() as queues:
        rule()
        rule("blind", value=5.0)
        rule("resting", is_enabled=False)
        ThresholdRule.objects.filter(name="retry_rate").update(metric="nobody_knows")
        queues.are(mail=11, post=None)
        run_tick(NOW)
        content = text(page(admin.get(PAGE)))

    assert "Depth of queues above 10" in content
    assert "mail is at 11" in content
    assert "Firing for 1" in content
    assert "post is at None" in content
    assert "1 open alert" in content
    assert "Off" in content
    assert "This is not measured on this installation." in content


def test_however_many_look_a_rule_is_asked_once_in_ten_seconds():
    with register_metric() as queues:
        saved = rule()
        queues.are(mail=11)

        loaded = [statuses.load_statuses([saved], NOW + after * SECOND)[0] for after in (0, 3, 9)]
        assert len(queues.queries) == 1
        assert [one.firing_total for one in loaded] == [1, 1, 1]

        run_tick(NOW + 9 * SECOND)
        queues.queries.clear()
        (open_now,) = statuses.load_statuses([saved], NOW + 9 * SECOND)
        statuses.load_statuses([saved], NOW + 10 * SECOND)
        assert (open_now.open, len(queues.queries)) == (1, 1)


def test_pages_of_many_ask_once(admin):
    with register_metric() as queues:
        rule()
        queues.are(mail=11)
        for _ in range(3):
            admin.get(PAGE)

    assert len(queues.queries) == 1


def test_rule_that_was_changed_is_asked_anew():
    with register_metric() as queues:
        saved = rule()
        queues.are(mail=11)
        statuses.load_statuses([saved], NOW)
        saved.value, saved.version = 12.0, 2

        (one,) = statuses.load_statuses([saved], NOW)

    assert (one.state, one.rule.value) == ("ok", 12.0)


def test_who_may_change_nothing_is_offered_nothing():
    operator = browser_as("operator")

    content = text(page(operator.get(PAGE)))

    assert "Timeout rate above 1 %" in content
    assert "New rule" not in content
    assert operator.get(NEW).status_code == 403
    assert browser_as("viewer").get(EDIT).status_code == 403


def test_a_new_rule_begins_with_what_it_is_about(admin):
    content = text(page(admin.get("/slos/thresholds/new/")))

    assert "Timeout rate" in content
    assert "Engaged switches" in content
    assert "Name" in text(page(admin.get(NEW)))


def test_what_was_typed_becomes_the_rule_shares_in_percent(admin):
    response = admin.post(NEW, FORM)

    rule = ThresholdRule.objects.get(name="core-timeouts")
    assert (response.status_code, response.url) == (302, PAGE)
    assert (rule.value, rule.window, rule.min_events) == (0.025, "10m", 1000)
    assert (rule.severity, rule.is_enabled) == ("info", True)


def test_a_form_that_nobody_touched_changes_nothing(admin):
    before = ThresholdRule.objects.get(name="e2e_latency")
    sent = form_values(page(admin.get("/slos/thresholds/e2e_latency/edit/")))

    response = admin.post("/slos/thresholds/e2e_latency/edit/", sent)

    assert response.status_code == 302
    assert ThresholdRule.objects.get(name="e2e_latency").version == before.version


@pytest.mark.parametrize(
    ("field", "entered", "message"),
    [
        ("value", "", "Enter the value to compare with."),
        ("value", "many", "Must be a number"),
        ("value", "250", "Must be a share"),
        ("window", "10s", "Must be of whole minutes"),
        ("min_events", "few", "Must be a whole number"),
        ("name", "a b", "letters, digits and signs"),
        ("severity", "", "Must be one of"),
    ],
)
def test_what_is_wrong_is_said_beside_its_field_and_nothing_is_lost(admin, field, entered, message):
    response = admin.post(NEW, {**FORM, field: entered})

    assert response.status_code == 422
    content = page(response)
    assert message in text(content)
    assert "one percent is normal here" in content
    assert not ThresholdRule.objects.filter(title="", name="core-timeouts").exists()


def test_what_it_would_find_is_shown_before_it_is_saved(admin):
    with register_metric() as queues:
        rule()
        queues.are(mail=11, post=3)
        form = {**FORM, "value": "2", "min_events": "1", "check": "yes"}
        content = text(page(admin.post("/slos/thresholds/deep/edit/", form)))

    assert "It would fire now for 2:" in content
    assert ThresholdRule.objects.get(name="deep").value == 10
    assert not Alert.objects.exists()


def test_nobody_overwrites_what_somebody_saved_meanwhile(admin):
    admin.post(EDIT, {**FORM, "version": "1"})

    response = admin.post(EDIT, {**FORM, "value": "3", "version": "1"})

    assert response.status_code == 409
    assert ThresholdRule.objects.get(name="timeout_rate").value == 0.025


def test_one_is_removed_after_it_was_asked(admin):
    content = text(page(admin.get("/slos/thresholds/timeout_rate/remove/")))
    response = admin.post("/slos/thresholds/timeout_rate/remove/", {"reason": "we count it twice"})

    assert "Timeout rate above 1 %" in content
    assert response.status_code == 302
    assert not ThresholdRule.objects.filter(name="timeout_rate").exists()


def test_a_name_that_nobody_knows_is_not_found(admin):
    assert admin.get("/slos/thresholds/nobody/edit/").status_code == 404
