"""Releasing from the screen: by an editable ramp plan without a script, or at once."""

import json
from datetime import UTC, datetime

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from breakers.tests.registered import dependency
from controlplane.core.actors import Actor
from controlplane.core.approvals.models import Approval
from controlplane.core.clock import db_now
from controlplane.core.gates.external import record_verdict
from controlplane.core.http.tests.callers import person
from controlplane.core.jobs.models import Job
from slo.tests.factories import slo
from switches.models import Episode, Ramp
from switches.rules.tests.factories import WHY
from switches.tests.browsers import (
    DIALOG,
    SAFE_NOW,
    Tags,
    browser,
    browser_as,
    engaged,
    page,
    released,
    text,
)
from switches.tests.ramps import start_ramp

pytestmark = pytest.mark.django_db
FINANCE = "/switches/segment/finance/release/"
FEATURE = "/switches/feature/mail/release/"
PART = {"HX-Request": "true", "HX-Target": "plan-editor"}
TYPED = "<b>복구</b> \"vendor\" says 'yes' & مرحبا"


def fields(html):
    """Return the fields that a browser would send of the first form shown."""
    shown = Tags(html.split('<details class="break-glass')[0])
    return {
        str(tag["name"]): str(tag.get("value") or "")
        for tag in shown.having("input")
        if str(tag.get("name", "")).startswith("step-")
    }


def press(client, path, button, sent, headers=None, **more):
    return client.post(path, {**sent, **more, "do": button}, headers=headers or {})


class TestEditor:
    @pytest.mark.parametrize("button", ["", "add-step"])
    def test_last_ramp_is_read_once(self, button):
        engaged("feature:mail")
        client = browser_as("operator")
        sent = fields(page(client.get(FEATURE)))

        with CaptureQueriesContext(connection) as queries:
            press(client, FEATURE, button, sent) if button else client.get(FEATURE)

        of_people = [one for one in queries if 'NOT "switches_ramp"."automatic"' in one["sql"]]
        assert len(of_people) == 1

    @pytest.mark.parametrize("headers", [{}, DIALOG, PART], ids=["page", "dialog", "part"])
    def test_steps_and_gates_come_and_go_by_plain_buttons(self, headers):
        engaged()
        client = browser_as("operator")
        sent = fields(page(client.get(FINANCE)))

        sent = fields(page(press(client, FINANCE, "add-step", sent, headers)))
        sent |= {"step-2-percent": "50", "step-2-dwell": "90s"}
        more = {"step-2-new": "external"}
        sent = fields(page(press(client, FINANCE, "add-gate-2", sent, headers, **more)))
        sent["step-2-gate-0-gate"] = "smoke"
        sent = fields(page(press(client, FINANCE, "remove-step-0", sent, headers)))
        client.post(FINANCE, {**sent, "justification": SAFE_NOW, "mode": "ramp"})

        plan = Ramp.objects.get().plan
        assert [(step["percent"], step["dwell_seconds"]) for step in plan] == [
            (25, 300),
            (50, 90),
            (100, 300),
        ]
        assert plan[1]["gates"] == [{"type": "external", "gate": "smoke"}]

    @pytest.mark.parametrize("headers", [{}, PART], ids=["page", "part"])
    def test_hasty_plan_of_a_segment_says_before_it_is_sent_who_has_to_approve(self, headers):
        engaged()
        client = browser_as("operator")
        sent = fields(page(client.get(FINANCE)))
        notice = "A second person has to approve this plan."

        at_first = page(press(client, FINANCE, "check", sent, headers))
        hasty = page(
            press(
                client,
                FINANCE,
                "check",
                sent | {"step-0-percent": "26", "step-1-percent": "50"},
                headers,
            )
        )

        assert notice not in at_first
        assert "Start ramp of segment:finance" in at_first
        assert notice in hasty
        assert "Request release by ramp" in hasty

    def test_button_of_the_editor_keeps_what_was_typed_and_begins_nothing(self):
        engaged()
        client = browser_as("operator")
        sent = fields(page(client.get(FINANCE)))

        response = press(client, FINANCE, "add-step", sent, justification=TYPED)

        assert response.status_code == 200
        assert (
            "&lt;b&gt;복구&lt;/b&gt; &quot;vendor&quot; says &#x27;yes&#x27; &amp; مرحبا"
            in page(response)
        )
        assert "A justification is required" not in page(response)
        assert not Ramp.objects.exists()

    @pytest.mark.parametrize("headers", [{}, DIALOG], ids=["page", "dialog"])
    def test_error_stands_beside_its_field_and_everything_is_kept(self, headers):
        engaged()
        client = browser_as("operator")
        sent = fields(page(client.get(FINANCE)))
        sent |= {"step-0-dwell": TYPED, "step-1-percent": "3"}
        more = {"step-1-gate-0-type": "slo", "step-1-gate-0-slo": ""}
        sent |= {**more, "justification": TYPED, "mode": "ramp"}

        response = client.post(FINANCE, sent, headers=headers)

        html, tags = page(response), Tags(page(response))
        assert response.status_code == 422
        for tag, name in (("input", "step-0-dwell"), ("select", "step-1-gate-0-slo")):
            assert tags.having(tag, name=name)[0]["aria-invalid"] == "true"
            assert f'id="{name}-says"' in html
        assert tags.value("step-0-dwell") == TYPED
        assert "복구" in html
        assert "<b>복구" not in html
        assert 'id="plan-editor" open' in html

    def test_order_of_shares_is_told_by_the_check(self):
        engaged()
        client = browser_as("operator")
        sent = {**fields(page(client.get(FINANCE))), "step-1-percent": "4"}

        html = page(press(client, FINANCE, "check", sent, PART))

        assert "Must be more than the 5 % of the step before." in html
        assert "<html" not in html

    def test_return_key_presses_a_button_that_changes_nothing(self):
        engaged()

        html = page(browser_as("operator").get(FINANCE))
        form = html[html.index(f'action="{FINANCE}"') :]

        assert form.index('value="check"') == form.index('name="do" value=') + len('name="do" ')

    def test_operator_whose_plan_lets_everything_flow_keeps_what_was_typed(self):
        engaged("feature:mail")
        sent = {"step-0-percent": "100", "justification": SAFE_NOW, "mode": "ramp"}

        response = browser_as("operator").post(FEATURE, sent)

        assert response.status_code == 422
        assert "Only approvers can release all traffic at once" in page(response)
        assert SAFE_NOW in page(response)
        assert Episode.objects.get().ended_at is None

    def test_viewer_edits_nothing(self):
        engaged()

        assert press(browser_as("viewer"), FINANCE, "add-step", {}).status_code == 403


class TestProposedPlan:
    GATED = ({"percent": 10, "gates": [{"type": "external", "gate": "smoke"}]}, {"percent": 100})
    IMMEDIATE = ({"percent": 50, "dwell_seconds": 0}, {"percent": 100})
    HASTY = ({"percent": 5, "dwell_seconds": 1}, {"percent": 100})

    def test_plan_of_the_last_ramp_is_proposed(self):
        ramp = start_ramp("feature:mail", plan=[*self.GATED])
        released("feature:mail")
        engaged("feature:mail")
        Job.objects.filter(pk=ramp.pk).update(created_at=datetime(2026, 3, 2, 14, 2, tzinfo=UTC))

        html = page(browser_as("operator").get(FEATURE))

        assert "10 %, 100 % in 2 steps of 5 min" in text(html)
        assert "Same plan as an earlier ramp (2 Mar 14:02)" in text(html)

    @pytest.mark.parametrize(
        ("plan", "more"),
        [(IMMEDIATE, {}), (HASTY, {}), (GATED, {"automatic": True})],
        ids=["immediate", "hasty", "automatic"],
    )
    def test_hasty_plan_and_that_of_an_automatic_ramp_are_not_proposed(self, plan, more):
        ramp = start_ramp("feature:mail", plan=[*plan], by=person("approver", "ada"))
        released("feature:mail")
        engaged("feature:mail")
        Ramp.objects.filter(pk=ramp.pk).update(**more)

        html = text(page(browser_as("operator").get(FEATURE)))

        assert "5 %, 25 %, 100 % in 3 steps of 5 min, no gates" in html
        assert "Same plan" not in html

    def test_ramp_of_another_switch_is_not_proposed(self):
        start_ramp("feature:chat", plan=[*self.GATED])
        engaged("feature:mail")

        assert "no gates" in text(page(browser_as("operator").get(FEATURE)))


class TestAtOnce:
    def test_operator_is_told_that_it_takes_an_approver(self):
        engaged("feature:mail")
        client = browser_as("operator")

        html = page(client.get(FEATURE))

        assert 'value="immediate"' not in html
        assert "Only approvers can release all traffic at once" in html

    def test_approver_releases_a_feature_at_once(self):
        engaged("feature:mail")
        client = browser_as("approver")

        html = page(client.get(FEATURE))
        response = client.post(
            FEATURE, {"justification": SAFE_NOW, "mode": "immediate"}, follow=True
        )

        assert "Release feature:mail now" in text(html)
        assert "feature:mail is released; its page shows which" in page(response)
        assert Episode.objects.get().ended_at is not None

    @pytest.mark.parametrize(
        ("sent", "opened"),
        [
            ({"mode": "immediate"}, ["immediate-release"]),
            ({"mode": "ramp"}, []),
            ({"glass_rule": "two-person", "glass_mode": "ramp"}, ["break-glass"]),
        ],
        ids=["at once", "ramp", "break-glass"],
    )
    def test_refused_form_keeps_the_part_open_whose_button_was_pressed(self, sent, opened):
        engaged()
        typed = {"justification": "", "glass_reason": "typed before"}

        html = page(browser_as("approver").post(FINANCE, {**typed, **sent}))

        parts = Tags(html).having("details", name="without-ramp")
        assert [part["class"] for part in parts if "open" in part] == opened

    def test_segment_at_once_asks_a_second_person(self):
        engaged()
        person("approver", "ayse")
        client = browser_as("operator")

        html = page(client.get(FINANCE))
        response = client.post(
            FINANCE, {"justification": SAFE_NOW, "mode": "immediate"}, follow=True
        )

        assert "Request release at once" in text(html)
        assert "ayse can approve." in text(html)
        assert "Any of" not in text(html)
        assert "it stays engaged until then" in page(response)
        assert Approval.objects.get().diff["mode"] == "immediate"

    def test_global_by_ramp_waits_and_its_plan_is_read_on_the_approvals_page(self):
        engaged("global:all")
        path = "/switches/global/all/release/"
        sent = {"step-0-percent": "10", "step-0-dwell": "10m", "step-1-percent": "100"}
        sent |= {"step-0-gate-0-type": "external", "step-0-gate-0-gate": "smoke"}
        client = browser_as("operator")

        html = page(client.get(path))
        client.post(path, {**sent, "justification": SAFE_NOW, "mode": "ramp"})
        approvals = text(page(browser_as("approver").get("/approvals/")))

        assert "The ramp starts on approval" in html
        assert Job.objects.get(kind="ramp").state == "pending"
        assert "10 % for 10 min, if external gate smoke" in approvals
        assert "dwell_seconds" not in approvals

    @pytest.mark.parametrize(
        ("switch", "sent", "shown", "waits"),
        [
            ("segment:finance", {"mode": "ramp"}, True, False),
            ("segment:finance", {"mode": "immediate"}, False, True),
            ("global:all", {"glass_rule": "two-person", "glass_reason": WHY}, False, False),
        ],
        ids=["ramp", "request", "break-glass"],
    )
    def test_only_a_release_without_approval_or_review_has_no_toast_on_its_page(
        self, switch, sent, shown, waits
    ):
        engaged(switch)
        path = f"/switches/{switch.replace(':', '/')}/"
        headers = {**DIALOG, "HX-Current-URL": f"http://testserver{path}"}
        sent = {"justification": SAFE_NOW, "glass_mode": "ramp", **sent}

        response = browser_as("approver").post(f"{path}release/", sent, headers=headers)

        done = json.loads(response.headers["HX-Trigger"])["switchgear:done"]
        assert (done["shown"], done["waits"]) == (shown, waits), done

    def test_ramping_one_offers_no_second_ramp(self):
        ramp = start_ramp("feature:mail")
        client = browser_as("approver")

        html = page(client.get(FEATURE))
        refused = client.post(FEATURE, {"justification": SAFE_NOW, "mode": "ramp"})

        assert "It is already ramping" in html
        assert f'href="/ramps/{ramp.pk}/"' in html
        assert "plan-editor" not in html
        assert refused.status_code == 409

    def test_form_of_another_site_begins_nothing(self):
        engaged()

        sent = {"justification": SAFE_NOW, "mode": "ramp"}
        response = browser(person("operator"), csrf=True).post(FINANCE, sent)

        assert response.status_code == 403
        assert not Ramp.objects.exists()


class TestGateLists:
    def test_gate_offers_slos_and_dependencies_with_their_state(self):
        engaged("feature:mail")
        slo("mail-availability")
        dependency(db_now(), "mail->smtp")
        client = browser_as("operator")
        sent = {"step-0-percent": "100", "gates": "all", "do": "add-gate-all"}

        of_slos = text(page(client.post(FEATURE, {**sent, "all-new": "samples"}, headers=PART)))
        of_breakers = text(page(client.post(FEATURE, {**sent, "all-new": "breaker"}, headers=PART)))

        assert "mail-availability · No data" in of_slos
        assert "mail → smtp · No data" in of_breakers
        assert "States in the lists: as of" in of_slos

    @pytest.mark.parametrize("button", [{"do": "check"}, {"mode": "ramp"}])
    def test_gate_on_an_unknown_slo_is_refused_and_kept(self, button):
        engaged("feature:mail")
        slo("mail-availability")
        sent = {"step-0-percent": "5", "step-1-percent": "100", "justification": SAFE_NOW}
        gate = {"gates": "all", "all-gate-0-type": "samples", "all-gate-0-slo": "gone"}

        html = page(browser_as("operator").post(FEATURE, {**sent, **gate, **button}))

        assert "No SLO is named gone. Choose another." in html
        (gone,) = Tags(html).having("option", value="gone")
        assert "selected" in gone
        assert not Ramp.objects.exists()

    def test_shared_gates_apply_to_each_step_of_the_ramp(self):
        engaged("feature:mail")
        slo("mail-availability")
        sent = {"step-0-percent": "5", "step-1-percent": "100", "justification": SAFE_NOW}
        gate = {"gates": "all", "all-gate-0-type": "samples", "all-gate-0-slo": "mail-availability"}

        browser_as("operator").post(FEATURE, {**sent, **gate, "mode": "ramp"})

        assert [[gate["slo"] for gate in step["gates"]] for step in Ramp.objects.get().plan] == [
            ["mail-availability"]
        ] * 2

    def test_reported_external_gates_are_suggested(self):
        engaged("feature:mail")
        automation = Actor(type="token", name="ci", scopes=frozenset({"gates:write"}))
        record_verdict(name="smoke", verdict="ok", evidence={}, actor=automation, now=db_now())
        sent = {"step-0-percent": "100", "gates": "all", "do": "add-gate-all"}

        response = browser_as("operator").post(
            FEATURE, {**sent, "all-new": "external"}, headers=PART
        )

        tags = Tags(page(response))
        assert tags.having("input", list="options-external-gates")
        assert tags.having("option", value="smoke")
