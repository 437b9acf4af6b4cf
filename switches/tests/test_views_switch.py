"""The page of one switch, and its actions without a script."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from controlplane.core.approvals.models import Approval
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import person
from switches.models import Episode, Ramp, Switch
from switches.tests.browsers import (
    DIALOG,
    PART,
    REASON,
    SAFE_NOW,
    Tags,
    browser,
    browser_as,
    engaged,
    local,
    overdue,
    page,
    released,
    text,
    within_a_minute,
)
from switches.tests.test_reconfirm import permanent

pytestmark = pytest.mark.django_db
FINANCE = "/switches/segment/finance/"
ACTIONS = ("release/", "extend/", "acknowledge/", "describe/", "undo/")


class TestPage:
    def test_engaged_switch_tells_its_story(self):
        engaged()

        html = page(browser_as("viewer").get(FINANCE))

        for part in (REASON, "Engaged", "kim", "Time left", "switch.engaged", "curl -s"):
            assert part in html

    def test_key_nobody_used_is_a_released_switch(self):
        response = browser_as("viewer").get("/switches/feature/never-seen/")

        assert response.status_code == 200
        assert "has never been engaged" in page(response)

    @pytest.mark.parametrize(
        "path", ["galaxy/x", "segment/a%20b", "global/other", "segment/" + "x" * 121]
    )
    def test_what_can_be_no_switch_is_not_found(self, path):
        assert browser_as("viewer").get(f"/switches/{path}/").status_code == 404

    def test_viewer_sees_everything_and_no_action(self):
        engaged()

        html = page(browser_as("viewer").get(FINANCE))

        assert REASON in html
        for action in ACTIONS:
            assert f"{FINANCE}{action}" not in html

    def test_operator_sees_what_may_be_done_now(self):
        engaged()

        html = page(browser_as("operator").get(FINANCE))

        for action in ("release/", "extend/", "acknowledge/", "describe/"):
            assert f"{FINANCE}{action}" in html
        assert f"{FINANCE}undo/" not in html

    def test_overdue_one_says_by_how_much(self):
        overdue("segment:finance")

        html = " ".join(page(browser_as("viewer").get(FINANCE)).split())

        assert "Overdue by" in html
        assert "until someone extends or releases it" in html

    def test_history_goes_back_in_pages(self):
        client = browser_as("operator")
        for number in range(10):
            engaged("segment:finance", reason=f"Ledger drifts again, INC-{number}00")
            released()
        oldest_shown = Episode.objects.order_by("-id")[7]

        first = page(client.get(FINANCE))
        older = page(client.get(f"{FINANCE}?episodes_before={oldest_shown.pk}"))

        assert first.count("Engaged for ") == 8
        assert f"episodes_before={oldest_shown.pk}" in first
        assert older.count("Engaged for ") == 2

    def test_last_engagement_is_the_newest_on_pages_of_older_ones_too(self):
        client = browser_as("operator")
        for _ in range(2):
            engaged("segment:finance")
            released()
        newest = Episode.objects.latest("id")

        older = page(client.get(f"{FINANCE}?episodes_before={newest.pk}"))

        assert older.count("Engaged for ") == 1
        assert f"/comments/episode/{newest.pk}/" in older

    def test_history_lists_only_episodes_that_ended(self):
        engaged("segment:finance")

        assert "History No earlier episodes." in text(page(browser_as("viewer").get(FINANCE)))

    def test_number_of_queries_does_not_grow_with_the_history(self):
        client = browser_as("operator")

        def queries():
            client.get(FINANCE)  # The count of attention items is then cached for some seconds.
            with CaptureQueriesContext(connection) as caught:
                client.get(FINANCE)
            return len(caught)

        engaged("segment:finance")
        released()  # with a review: who may decide on it is asked of the teams
        engaged("segment:finance")
        few = queries()
        for _ in range(5):
            released()
            engaged("segment:finance")

        assert queries() == few <= 32  # of which three are for the plot of calls

    def test_page_is_current_until_something_changes(self):
        engaged()
        client = browser_as("viewer")

        def refresh():
            since = Tags(page(client.get(FINANCE))).value("since")
            return since, client.get(FINANCE, {"since": since}, headers=PART)

        since, current = within_a_minute(refresh)
        assert current.status_code == 204

        overdue("segment:other")
        changed = client.get(FINANCE, {"since": since}, headers=PART)
        assert changed.status_code == 200
        assert "<html" not in page(changed)
        assert "1 overdue" in page(changed)

    def test_page_is_rendered_again_each_minute_for_dates_that_pass(self, kim):
        permanent(kim)
        client = browser_as("viewer")
        first = client.get(FINANCE, headers=PART)
        head, _, minute = Tags(page(first)).value("since").partition("-")
        a_minute_ago = f"{head}-{int(minute) - 1}"
        Episode.objects.update(reconfirm_due_at=db_now() - timedelta(seconds=1))

        again = client.get(FINANCE, {"since": a_minute_ago}, headers=PART)

        assert "was due" not in text(page(first))
        assert "was due" in text(page(again))


class TestRelease:
    def test_releases_by_ramp_with_a_justification(self):
        engaged()

        response = browser_as("operator").post(
            f"{FINANCE}release/", {"justification": SAFE_NOW}, follow=True
        )

        assert response.redirect_chain == [(FINANCE, 302)]
        assert "segment:finance is ramping at 5 %; its page shows which" in page(response)
        assert Ramp.objects.get().justification == SAFE_NOW
        assert Episode.objects.get().allow_percent == 5

    @pytest.mark.parametrize("blank", ["", "  ", "\u200b"])
    def test_blank_justification_is_told(self, blank):
        engaged()

        response = browser_as("operator").post(f"{FINANCE}release/", {"justification": blank})

        assert response.status_code == 422
        assert "A justification is required" in page(response)
        assert Episode.objects.get().ended_at is None

    def test_justification_that_can_not_be_kept_is_told_and_stays_in_the_form(self):
        engaged()
        endless = "Ledger is whole again. " * 100

        response = browser_as("operator").post(f"{FINANCE}release/", {"justification": endless})

        assert response.status_code == 422
        assert "at most 2,000" in page(response)
        assert endless.strip() in page(response)

    def test_released_meanwhile_is_told(self):
        response = browser_as("operator").post(f"{FINANCE}release/", {"justification": SAFE_NOW})

        assert response.status_code == 409
        assert "already released" in page(response)

    def test_global_release_asks_and_says_who_may_approve(self):
        engaged("global:all")
        person("approver", "ayse")
        client = browser_as("operator")

        form = page(client.get("/switches/global/all/release/"))
        done = page(
            client.post("/switches/global/all/release/", {"justification": SAFE_NOW}, follow=True)
        )

        assert "A second person has to approve" in form
        assert "ayse" in form
        assert "the ramp starts on approval" in done
        assert Episode.objects.get().ended_at is None
        assert Approval.objects.get().state == "pending"

    def test_in_the_dialog_the_page_stays_and_is_told(self):
        engaged()

        response = browser_as("operator").post(
            f"{FINANCE}release/", {"justification": SAFE_NOW}, headers=DIALOG
        )

        assert response.status_code == 204
        assert "segment:finance is ramping" in response["HX-Trigger"]


class TestExtend:
    def extend(self, client=None, **fields):
        request_body = {
            "how_long": "7d",
            "reason": "Vendor fix slips to Monday, INC-4411",
            **fields,
        }
        return (client or browser_as("operator")).post(f"{FINANCE}extend/", request_body)

    def test_moves_the_expiry(self):
        engaged()

        assert self.extend().status_code == 302

        assert Episode.objects.get().expires_at > db_now() + timedelta(days=6)

    def test_until_a_chosen_time(self):
        engaged()
        wall = (db_now() + timedelta(days=3)).replace(second=0, microsecond=0)

        assert self.extend(how_long="at", expires_at=local(wall)).status_code == 302

        assert abs(Episode.objects.get().expires_at - wall) < timedelta(seconds=2)

    @pytest.mark.parametrize(
        ("fields", "complaint"),
        [
            ({"how_long": "at"}, "Choose a time"),
            ({"how_long": "at", "expires_at": "2020-01-01T00:00"}, "Choose a time in the future"),
            ({"how_long": "at", "expires_at": "2999-01-01T00:00"}, "at most 30 days"),
            ({"reason": "please"}, "too short"),
        ],
    )
    def test_wrong_field_is_told(self, fields, complaint):
        engaged()

        response = self.extend(**fields)

        assert response.status_code == 422
        assert complaint in page(response)

    def test_offered_durations_begin_at_the_present_expiry(self):
        engaged("segment:finance", expires_in="7d")
        before = Episode.objects.get().expires_at

        response = self.extend(how_long="1h")

        assert response.status_code == 302
        gained = Episode.objects.get().expires_at - before
        assert timedelta(hours=1) <= gained < timedelta(hours=1, seconds=1)

    def test_overdue_switch_is_extended_from_now(self):
        overdue("segment:finance")

        self.extend(how_long="4h")

        left = Episode.objects.get().expires_at - db_now()
        assert timedelta(hours=3, minutes=59) < left <= timedelta(hours=4, seconds=1)

    def test_durations_that_end_too_late_are_not_offered(self):
        engaged("segment:finance", expires_in="29d")

        html = page(browser_as("operator").get(f"{FINANCE}extend/"))

        assert 'value="4h"' in html
        assert 'value="7d"' not in html

    def test_expiry_that_changed_since_the_form_was_shown_is_not_extended_further(self):
        kim = engaged("segment:finance")
        client = browser_as("operator")
        shown = Tags(page(client.get(f"{FINANCE}extend/"))).value("present")
        self.extend(browser(kim), how_long="24h")
        before = Episode.objects.get().expires_at

        response = self.extend(client, how_long="24h", present=shown)

        assert response.status_code == 422
        assert "Its expiry changed in the meantime" in page(response)
        assert Episode.objects.get().expires_at == before

    def test_permanent_asks_for_approval(self):
        engaged()

        self.extend(how_long="permanent")

        assert Approval.objects.get().kind == "permanent"
        assert not Episode.objects.get().permanent


class TestUndo:
    def test_own_engage_is_taken_back(self):
        kim = engaged()

        response = browser(kim).post(f"{FINANCE}undo/", follow=True)

        assert "Undone: segment:finance is released" in page(response)
        assert Episode.objects.get().ended_how == "undone"

    def test_somebody_elses_is_refused_with_the_way_out(self):
        engaged()

        response = browser_as("operator").post(f"{FINANCE}undo/")

        assert response.status_code == 409
        assert "Release it instead" in page(response)

    def test_too_late_is_refused(self):
        kim = engaged(now=db_now() - timedelta(seconds=31))

        assert browser(kim).post(f"{FINANCE}undo/").status_code == 409

    def test_is_never_done_by_a_link(self):
        assert browser_as("operator").get(f"{FINANCE}undo/").status_code == 405


def test_acknowledge_is_noted():
    overdue("segment:finance")

    browser_as("operator").post(f"{FINANCE}acknowledge/", {"comment": "on it"})

    assert Episode.objects.get().acknowledged_by == "user:a-operator"
    assert "on it" in page(browser_as("viewer").get(FINANCE))


class TestDescribe:
    def test_owner_description_and_runbook_are_kept(self):
        described = {
            "owner": "payments on-call",
            "description": "Stops invoicing",
            "runbook_url": "https://runbooks.example/finance",
        }

        browser_as("operator").post(f"{FINANCE}describe/", described)

        switch = Switch.objects.get()
        assert {name: getattr(switch, name) for name in described} == described

    @pytest.mark.parametrize("url", ["javascript:alert(1)", "not a url", "ftp://x/y"])
    def test_runbook_has_to_be_a_web_address(self, url):
        response = browser_as("operator").post(f"{FINANCE}describe/", {"runbook_url": url})

        assert response.status_code == 422
        assert not Switch.objects.exclude(runbook_url="").exists()

    def test_null_character_changes_nothing(self):
        browser_as("operator").post(f"{FINANCE}describe/", {"owner": "payments"})

        response = browser(person("admin")).post(f"{FINANCE}describe/", {"owner": "a\x00b"})

        assert response.status_code == 422
        assert Switch.objects.get().owner == "payments"


@pytest.mark.parametrize("action", ["release/", "extend/", "acknowledge/", "describe/", "undo/"])
def test_viewer_is_refused_by_the_server_too(action):
    engaged()
    fields = {"justification": SAFE_NOW, "reason": REASON, "how_long": "7d", "owner": "me"}
    before = Episode.objects.values().get()

    response = browser_as("viewer").post(f"{FINANCE}{action}", fields)

    assert response.status_code == 403
    assert Episode.objects.values().get() == before
    assert Switch.objects.get().owner == ""


@pytest.mark.parametrize("action", ["release/", "extend/", "acknowledge/", "describe/", "undo/"])
def test_form_without_its_csrf_token_is_refused(action):
    kim = engaged()

    assert browser(kim, csrf=True).post(f"{FINANCE}{action}").status_code == 403
    assert Episode.objects.get().ended_at is None


@pytest.mark.parametrize("action", ["release/", "extend/", "acknowledge/", "describe/"])
def test_every_change_has_a_page_of_its_own(action):
    engaged()
    html = page(browser_as("operator").get(f"{FINANCE}{action}"))

    assert "<html" in html
    assert f'action="{FINANCE}{action}"' in html
