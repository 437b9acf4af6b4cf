"""The blast radius on screens, before an engage and on the switch's page."""

import re
from datetime import timedelta

import pytest

from controlplane.accounts.models.people import User
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import person
from controlplane.core.instances.models import Instance
from switches.tests.browsers import (
    DIALOG,
    PART,
    REASON,
    Tags,
    browser,
    browser_as,
    engaged,
    page,
    text,
)
from switches.tests.instances import report_checks, report_version

FINANCE = "/switches/segment/finance/"


@pytest.mark.django_db
class TestEngaging:
    def engage(self, client, path="", **fields):
        request_body = {"scope": "segment", "key": "finance", "reason": REASON, "how_long": "24h"}
        return client.post(f"/switches/engage/{path}", {**request_body, **fields}, headers=DIALOG)

    def test_who_is_hit_stands_in_the_form_before_the_button(self):
        report_checks("core/a1", "segment:finance", at=db_now(), per_second=10)
        client = browser_as("operator")

        html = page(client.get("/switches/engage/?scope=segment&key=finance", headers=DIALOG))

        assert "1 instance of 1 service checked segment:finance" in text(html)
        assert html.index("1 instance of 1 service") < html.index("data-verb")

    def test_sum_stands_beside_the_button_whatever_else_is_said_there(self):
        report_checks("core/a1", "segment:finance", at=db_now(), per_second=10)
        client = browser_as("operator")

        for fields in ({}, {"reason": ""}):
            html = page(self.engage(client, "preview/", **fields))
            beside_the_button = html.partition('id="blast"')[0]
            assert "Checked by 1 instance: " in text(beside_the_button)

    @pytest.mark.parametrize(
        ("age", "shown"),
        [
            pytest.param(0, "10/s in the last minute", id="checked just now"),
            pytest.param(90, "no checks since", id="silent for longer than the rate's period"),
        ],
    )
    def test_rate_is_of_the_last_minute_only_while_it_is_checked(self, age, shown):
        at = db_now() - timedelta(seconds=age)
        report_checks("core/a1", "segment:finance", at=at, per_second=10)

        content = text(page(self.engage(browser_as("operator"), "preview/")))

        assert shown in content
        assert "/s now" not in content
        assert ("in the last minute" in content) is (age == 0)

    def test_caller_behind_a_relay_is_shown_with_the_relays_name(self):
        report_checks("core/a1", "segment:finance", at=db_now())
        Instance.objects.update(relay="eu-1")

        content = text(page(self.engage(browser_as("operator"), "preview/")))

        assert "core/a1 through relay eu-1" in content

    def test_tokens_are_no_services(self):
        now = db_now()
        report_checks("core/a1", "segment:finance", at=now)
        for name in ("token:billing", "token:mail", "token:ledger"):
            report_checks(name, "segment:finance", at=now)

        shown = text(page(self.engage(browser_as("operator"), "preview/")))

        assert "1 instance of 1 service and 3 tokens checked segment:finance" in shown

    def test_tokens_alone_are_named_as_such(self):
        report_checks("token:billing", "segment:finance", at=db_now())

        html = page(self.engage(browser_as("operator"), "preview/"))

        assert "1 token checked segment:finance" in text(html)
        assert "token:billing" in text(html)
        assert "Services that check it" not in html

    def test_preview_says_who_is_hit_also_while_the_reason_is_missing(self):
        report_checks("core/a1", "segment:finance", at=db_now(), per_second=10)

        html = page(self.engage(browser_as("operator"), "preview/", reason=""))

        assert "1 instance of 1 service checked segment:finance" in text(html)
        assert Tags(html).having("div", id="blast", hx_swap_oob="merge")

    def test_preview_of_a_key_nobody_checks_does_not_call_it_safe(self):
        shown = text(page(self.engage(browser_as("operator"), "preview/")))

        assert "No checks of segment:finance were reported in the last hour" in shown
        assert "may still depend on it" in shown

    def test_preview_of_the_global_switch_is_everybody(self):
        report_checks("core/a1", "segment:finance", at=db_now())
        report_checks("core/a2", "feature:beta", at=db_now())

        shown = text(page(self.engage(browser_as("operator"), "preview/", scope="global", key="")))

        assert "2 instances of 1 service checked switches" in shown

    @pytest.mark.parametrize("fields", [{"key": ""}, {"key": "a b"}, {"scope": "galaxy"}])
    def test_what_is_no_switch_yet_hits_nobody(self, fields):
        response = self.engage(browser_as("operator"), "preview/", **fields)

        assert response.status_code == 200
        assert "checked" not in text(page(response))

    def test_overlapping_switch_is_named(self):
        report_checks("core/a1", "segment:finance", "feature:beta", at=db_now())
        kim = engaged("feature:beta", reason="Ledger drifts since 01:00, INC-1")

        shown = text(page(self.engage(browser(kim), "preview/")))

        assert "The same callers also check" in shown
        assert "Ledger drifts since 01:00, INC-1" in shown


@pytest.mark.django_db
def test_page_of_a_switch_says_who_checks_it():
    now = db_now()
    for number in range(25):
        report_checks(f"s{number}/a", "segment:finance", at=now, per_second=number)

    shown = text(page(browser_as("viewer").get(FINANCE)))

    assert "25 instances of 25 services checked it" in shown
    assert "and 19 more services" in shown
    assert "The 20 busiest callers" in shown


@pytest.mark.django_db
def test_callers_that_stopped_are_marked():
    now = db_now()
    engaged("segment:other")  # Publishes a version.
    for name in ("core/a1", "core/a2", "web/b1"):
        report_checks(name, "segment:finance", at=now, per_second=5)
        report_version(name, 1, now)
    report_version("core/a1", 1, now, stopped=True)
    client = browser_as("viewer")
    one = text(page(client.get(f"{FINANCE}callers/", headers=PART)))
    for name in ("core/a2", "web/b1"):
        report_version(name, 1, now, stopped=True)
    every = text(page(client.get(f"{FINANCE}callers/", headers=PART)))

    assert "1 instance has stopped since." in one
    assert "core 2 (1 stopped)" in one
    assert "core/a1 stopped" in one
    assert "core/a2 stopped" not in one
    assert "All 3 instances have stopped since." in every
    assert "web 1 (1 stopped)" in every


@pytest.mark.django_db
def test_ids_stay_unique_with_the_dialog_over_the_page():
    report_checks("core/a1", "segment:finance", at=db_now())
    client = browser_as("operator")
    engaged("segment:finance")

    under = page(client.get(FINANCE))
    over = page(client.get("/switches/engage/?scope=segment&key=finance", headers=DIALOG))

    # Content of a template element is not shown yet.
    pages = [
        re.sub(r"<template.*?</template>", "", html, flags=re.DOTALL) for html in (under, over)
    ]
    ids = [tag["id"] for html in pages for _, tag in Tags(html).found if "id" in tag]
    assert len(ids) == len(set(ids))


@pytest.mark.django_db
class TestSameKeyInAnotherScope:
    def preview(self, **fields):
        request_body = {"scope": "segment", "key": "nl2sql", "reason": REASON, "how_long": "24h"}
        client = browser(User.objects.filter(username="kim").first() or person("operator", "kim"))
        return page(client.post("/switches/engage/preview/", request_body | fields, headers=DIALOG))

    def test_is_offered_where_it_is_checked(self):
        report_checks("core/a1", "feature:nl2sql", at=db_now(), per_second=27)

        html = self.preview()

        assert Tags(html).having("div", id="blast-said", class_="note note--warn blast__nobody")
        assert "Choose feature:nl2sql instead" in text(html)
        [link] = Tags(html).having("a", data_scope="feature")
        assert link["href"].startswith("/switches/engage/?scope=feature&key=nl2sql&reason=OpenAI")

    def test_is_offered_where_it_is_known_if_this_one_is_not(self):
        engaged("experiment:nl2sql")

        assert "Choose experiment:nl2sql instead" in text(self.preview())
        assert "instead" not in text(self.preview(scope="experiment"))

    def test_is_not_offered_if_this_one_is_checked(self):
        report_checks("core/a1", "feature:nl2sql", "segment:nl2sql", at=db_now(), per_second=27)

        assert "instead" not in text(self.preview())

    @pytest.mark.parametrize("path", ["/switches/segment/nl2sql/", ""])
    def test_result_says_again_that_nobody_was_seen(self, path):
        report_checks("core/a1", "feature:nl2sql", at=db_now(), per_second=27)
        client = browser_as("operator")
        request_body = {"scope": "segment", "key": "nl2sql", "reason": REASON, "how_long": "24h"}

        done = client.post("/switches/engage/", request_body, headers=DIALOG)
        html = page(client.get(path) if path else done)

        assert Tags(html).having("div", class_="note note--warn effect__unchecked")
        assert "Engage feature:nl2sql instead" in text(html)
