"""The release form's notices about gates of its ramp, and about wider switches."""

import pytest

from controlplane.core.clock import db_now
from switches.tests.browsers import Tags, browser_as, engaged, page, text
from switches.tests.instances import report_checks

pytestmark = pytest.mark.django_db
FEATURE = "/switches/feature/mail/release/"
PART = {"HX-Request": "true", "HX-Target": "plan-editor"}
PROMISE = "what goes wrong is stopped again, at once"


def fields(html):
    return {
        str(tag["name"]): str(tag.get("value") or "")
        for tag in Tags(html).having("input")
        if str(tag.get("name", "")).startswith("step-")
    }


def test_plan_without_gates_says_that_nothing_stops_it_and_promises_nothing():
    engaged("feature:mail")

    html = page(browser_as("operator").get(FEATURE))

    assert "This ramp has no gates, so nothing stops it automatically." in text(html)
    assert "note--warn" in html[html.index('id="plan-watched"') :][:60]
    assert PROMISE not in html


@pytest.mark.parametrize(
    ("gates", "notice"),
    [
        (["manual"], "This ramp has no gates"),
        (["slo"], "Steps 2, 3 have no gate."),
        (
            ["slo", "breaker", "external"],
            "Each step has a gate. If a gate fails, the switch is engaged again",
        ),
    ],
)
def test_plan_with_gates_says_what_they_watch(gates, notice):
    engaged("feature:mail")
    client = browser_as("operator")
    sent = fields(page(client.get(FEATURE)))
    for index, type_ in enumerate(gates):
        more = {"do": f"add-gate-{index}", f"step-{index}-new": type_}
        html = page(client.post(FEATURE, {**sent, **more}, headers=PART))
        sent = fields(html)

    assert notice in text(html)
    assert 'hx-swap-oob="true"' in html


def test_everything_stopped_makes_the_ramp_prove_nothing():
    engaged("feature:mail")
    engaged("global:all")

    html = text(page(browser_as("operator").get(FEATURE)))

    assert "global:all is engaged and blocks all traffic. A ramp now would test nothing." in html


def test_segment_checked_by_the_same_is_named_and_another_feature_is_not():
    for switch in ("feature:mail", "feature:chat", "segment:finance", "segment:other"):
        engaged(switch)
    report_checks("core/a1", "feature:mail", "feature:chat", "segment:finance", at=db_now())

    html = text(page(browser_as("operator").get(FEATURE)))

    assert "segment:finance is engaged and blocks some or all of the same traffic." in html
    assert "feature:chat is engaged" not in html
    assert "segment:other is engaged" not in html
