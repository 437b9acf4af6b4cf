"""The page of drills, its forms, and the part of a switch's page."""

from datetime import timedelta

import pytest
from django.template.loader import render_to_string

from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import person
from switches.drills import presentation, services
from switches.drills.tests.drill_helpers import (
    CANARY,
    SHELL,
    WHY,
    begin,
    mark,
    report_present,
    run_drill,
    turn,
)
from switches.models import Drill, DrillMark, DrillSchedule, Switch
from switches.tests.browsers import (
    DIALOG,
    PART,
    Tags,
    browser_as,
    engaged,
    page,
    text,
    within_a_minute,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def moment():
    """Return the present time, with a marked canary present."""
    now = db_now()
    mark(CANARY, now=now)
    report_present(CANARY, now=now)
    return now


def get_page(role="operator", **headers):
    return page(browser_as(role).get("/drills/", headers=headers))


class TestPage:
    def test_tells_what_was_measured(self, moment):
        run_drill(begin(now=moment), CANARY, now=moment)

        page_text = text(get_page())

        assert "Passed" in page_text
        assert "Blocked: 1 of 1" in page_text
        assert "1 instance blocked traffic within" in page_text
        assert WHY in page_text

    def test_tells_why_one_failed(self, moment):
        mark("core/gone", now=moment)
        drill = begin(now=moment)
        services.remove_mark(pattern=CANARY, actor=SHELL, now=moment)
        run_drill(drill, now=moment)

        assert "Failed" in text(get_page())
        assert "No drill instance is reporting. Check that the drill instances run" in text(
            get_page("viewer")
        )

    def test_running_one_can_be_ended(self, moment):
        drill = begin(now=moment)
        turn(db_now())

        html = get_page()

        assert "Wait until they block…" in text(html)
        assert Tags(html).having("a", href=f"/drills/{drill.pk}/cancel/")
        assert not Tags(get_page("viewer")).having("a", href=f"/drills/{drill.pk}/cancel/")

    def test_counts_who_is_there_by_mark(self, moment):
        mark("chat/*", now=moment)

        page_text = text(get_page())

        assert "1 reporting" in page_text
        assert "none reporting" in page_text

    def test_lists_what_nobody_rehearsed(self, moment):
        run_drill(begin(now=moment), CANARY, now=moment)
        Switch.objects.create(id="feature:old", scope="feature", key="old", registered_at=moment)
        Switch.objects.create(id="global:all", scope="global", key="all", registered_at=moment)

        html = get_page()
        unproven = text(html[html.index('id="unproven"') :])

        assert "feature:old" in unproven
        assert "segment:finance" not in unproven
        assert "global:all" not in unproven

    def test_poll_that_saw_the_last_change_is_answered_204(self, moment):
        browser = browser_as("operator")

        def refresh():
            since = Tags(page(browser.get("/drills/"))).value("since")
            return since, browser.get(f"/drills/?since={since}", headers=PART)

        since, current = within_a_minute(refresh)
        assert current.status_code == 204
        begin(now=moment)
        assert browser.get(f"/drills/?since={since}", headers=PART).status_code == 200

    def test_names_are_escaped(self, moment):
        DrillMark.objects.create(pattern="<b>/x", created_at=moment, created_by="a")

        assert "&lt;b&gt;/x" in get_page()


class TestForms:
    def test_drill_begins_by_plain_form(self, moment):
        browser = browser_as("operator")

        response = browser.post(
            "/drills/new/",
            {"switch": "segment:finance", "mode": "live", "reason": WHY, "every": "30d"},
        )

        drill = Drill.objects.get()
        assert response.status_code == 302
        assert response["Location"] == f"/drills/#drill-{drill.pk}"
        assert DrillSchedule.objects.get().every_days == 30

    def test_form_in_the_dialog_says_whom_it_stops(self, moment):
        html = page(browser_as("operator").get("/drills/new/?switch=segment:chat", headers=DIALOG))

        assert "A live drill blocks 1 instance" in text(html)
        assert Tags(html).value("switch") == "segment:chat"
        assert "<html" not in html

    @pytest.mark.parametrize(
        ("fields", "status", "message"),
        [
            ({"switch": "global:all"}, 422, "The global switch can't be drilled"),
            ({"switch": "finance"}, 422, "Must be one of"),
            ({"reason": ""}, 422, "A reason is required"),
            ({"every": "soon"}, 422, "Use a whole number"),
            ({"switch": "segment:busy"}, 409, "already running"),
        ],
    )
    def test_what_is_wrong_is_said_beside_its_field(self, moment, fields, status, message):
        begin("segment:busy", now=moment)
        sent = {"switch": "segment:a", "mode": "live", "reason": WHY, "every": "", **fields}

        response = browser_as("operator").post("/drills/new/", sent, headers=DIALOG)

        assert response.status_code == status
        assert message in text(page(response))
        assert Drill.objects.count() == 1

    def test_cancel_by_form(self, moment):
        drill = begin(now=moment)
        browser = browser_as("operator")

        assert browser.post(f"/drills/{drill.pk}/cancel/", {"reason": ""}).status_code == 422
        assert browser.post(f"/drills/{drill.pk}/cancel/", {"reason": "no"}).status_code == 302
        assert browser.post(f"/drills/{drill.pk}/cancel/", {"reason": "no"}).status_code == 409
        assert not Drill.objects.get().live
        assert browser.get("/drills/999/cancel/").status_code == 404

    def test_marks_by_form_are_for_approvers(self, moment):
        approver, operator = browser_as("approver"), browser_as("operator")

        assert approver.post("/drills/instances/new/", {"pattern": "core"}).status_code == 422
        assert approver.post("/drills/instances/new/", {"pattern": "chat/*"}).status_code == 302
        assert operator.get("/drills/instances/new/").status_code == 403
        fields = {"pattern": "chat/*"}
        assert operator.post("/drills/instances/remove/", fields).status_code == 403
        assert approver.post("/drills/instances/remove/", fields).status_code == 302
        assert approver.post("/drills/instances/remove/", fields).status_code == 404
        assert [mark.pattern for mark in DrillMark.objects.all()] == [CANARY]

    def test_schedule_is_removed_by_form(self, moment):
        services.schedule_drill(
            scope="segment", key="a", every="7d", reason=WHY, actor=SHELL, now=moment
        )
        browser = browser_as("operator")

        browser.post("/drills/schedules/remove/", {"switch": "segment:a"})

        assert not DrillSchedule.objects.exists()
        again = browser.post("/drills/schedules/remove/", {"switch": "nonsense"})
        assert again.status_code == 400

    def test_viewer_begins_nothing(self, moment):
        browser = browser_as("viewer")

        assert browser.get("/drills/new/").status_code == 403
        assert browser.post("/drills/new/", {"switch": "segment:a"}).status_code == 403


class TestPartOfASwitch:
    def part(self, switch, now, role="operator"):
        context = {"switch": switch, "now": now, "user": person(role, f"x-{role}"), "episode": None}
        return render_to_string(
            "switches/_drill.html", {**context, **presentation.switch_context(switch, now)}
        )

    def test_never_rehearsed_warns(self, moment):
        switch = Switch(id="segment:a", scope="segment", key="a")

        html = self.part(switch, moment)

        assert "Never passed a drill." in text(html)
        assert Tags(html).having("a", href="/drills/new/?switch=segment%3Aa")

    def test_proven_lately_does_not_and_long_ago_does(self, moment):
        run_drill(begin(now=moment), CANARY, now=moment)
        switch = Switch.objects.get()

        assert "Last passed" in text(self.part(switch, moment))
        assert "note--warn" not in self.part(switch, moment, "viewer")
        later = switch.last_proven_at + timedelta(days=91)
        assert "No passed drill in the last 90 days" in text(self.part(switch, later, "admin"))

    def test_running_drill_shows_its_step_and_when_it_ends(self, moment):
        begin(now=moment)
        turn(db_now())

        page_text = text(self.part(Switch.objects.get(), db_now()))

        assert "Running Wait until they block…" in page_text
        assert "Engage · passed" in page_text
        assert "The drill instances are released by" in page_text

    def test_global_switch_has_no_button(self, moment):
        html = self.part(Switch(id="global:all", scope="global", key="all"), moment)

        assert "can't be drilled" in html
        assert "/drills/new/" not in html


class TestChoices:
    def test_form_lists_released_switches(self, moment):
        for key in ("flowing", "stopped"):
            Switch.objects.create(
                id=f"feature:{key}", scope="feature", key=key, registered_at=moment
            )
        engaged("feature:stopped")

        html = page(browser_as("operator").get("/drills/new/"))

        assert Tags(html).having("option", value="feature:flowing")
        assert not Tags(html).having("option", value="feature:stopped")

    def test_form_lists_live_instances_and_their_services(self, moment):
        report_present("core/canary-2", now=moment)
        report_present("core/gone", now=moment - timedelta(minutes=5))

        html = page(browser_as("approver").get("/drills/instances/new/"))

        options = [tag["value"] for tag in Tags(html).having("option")]
        assert options == ["core/*", CANARY, "core/canary-2"]
