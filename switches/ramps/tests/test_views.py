"""The timeline of a ramp, its page and the list, and people's actions there without JavaScript."""

import json
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from controlplane.core.approvals.models import Approval
from controlplane.core.audit.models import AuditEntry
from controlplane.core.canonical import timestamp
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import person
from controlplane.core.jobs.models import Job
from switches.models import Episode, Ramp
from switches.tests.browsers import DIALOG, PART, SAFE_NOW, Tags, browser, browser_as, page, text
from switches.tests.ramps import QUICK, first_gate_result, gated_plan, run_workers, start_ramp

pytestmark = pytest.mark.django_db
FINANCE = "/switches/segment/finance/"
NASTY = "<script>alert(1)</script> & \u202e한국어 مرحبا 🚨"
MARKUP = NASTY.replace("\u202e", "")
REASON_TO_DO = "vendor asks us to wait, INC-4411"


def ramp_path(ramp, what=""):
    return f"/ramps/{ramp.pk}/{what}"


class TestTimeline:
    @pytest.mark.parametrize("path", [FINANCE, "/ramps/{}/", "/ramps/{}/part/"])
    def test_running_ramp_says_share_step_and_what_is_left(self, path):
        ramp = start_ramp(plan=QUICK)

        html = page(browser_as("viewer").get(path.format(ramp.pk)))
        content = text(html)

        for part in (
            "5 %",
            "allowed now",
            "Running",
            "step 1 of 2",
            "Next step in",
            SAFE_NOW,
            "kim",
        ):
            assert part in content
        assert 'aria-current="step"' in html

    def test_gate_says_verdict_why_and_evidence(self):
        ramp = start_ramp(plan=gated_plan({"type": "slo", "slo": "core-availability"}))
        evidence = {"good": 1204, "total": 1210, "burn_rate": 3.25, "window": "12 s"}
        first_gate_result(
            ramp, verdict="fail", evidence=evidence, checked_at="2026-11-21T10:00:00Z"
        )

        content = text(page(browser_as("viewer").get(ramp_path(ramp))))

        finding = "burn rate 3.25×, allowed 1× (1,204 of 1,210 events good in 12 s)"
        assert f"SLO core-availability: {finding}" in content
        assert "Fail" in content

    @pytest.mark.parametrize(("seconds", "is_stale"), [(20, False), (61, True)])
    def test_evidence_says_since_when_it_is_not_updated(self, seconds, is_stale):
        ramp = start_ramp(plan=gated_plan({"type": "slo", "slo": "core-availability"}))
        observed_at = timestamp(db_now() - timedelta(seconds=seconds))
        evidence = {"good": 1204, "total": 1210, "burn_rate": 3.25, "observed_at": observed_at}
        first_gate_result(ramp, verdict="pass", evidence=evidence, checked_at=observed_at)

        html = page(browser_as("viewer").get(ramp_path(ramp)))

        assert ("no update since" in html) is is_stale
        assert ("small quiet dated--stale" in html) is is_stale

    @pytest.mark.parametrize(
        ("verdict", "word"),
        [("pass", "Pass"), ("fail", "Fail"), ("no_data", "No data"), ("waiting", "Waiting")],
    )
    def test_each_verdict_has_a_word(self, verdict, word):
        ramp = start_ramp(plan=gated_plan({"type": "breaker", "dependency": "core->oracle"}))
        first_gate_result(ramp, verdict=verdict, evidence={})

        html = page(browser_as("viewer").get(ramp_path(ramp)))

        assert f"<span>{word}</span></span>" in html

    def test_gate_that_was_never_checked_has_no_time(self):
        ramp = start_ramp(plan=gated_plan({"type": "breaker", "dependency": "core->oracle"}))
        client = browser_as("viewer")
        unchecked = page(client.get(ramp_path(ramp)))
        first_gate_result(ramp, verdict="pass", evidence={})

        checked = page(client.get(ramp_path(ramp)))

        gates = [html.split('class="gates"')[1].split("</ul>")[0] for html in (unchecked, checked)]
        assert ["as of" in gate for gate in gates] == [False, True]

    def test_breaker_gate_names_its_dependency_as_screens_do(self):
        ramp = start_ramp(plan=gated_plan({"type": "breaker", "dependency": "core->oracle"}))
        first_gate_result(ramp, verdict="pass", evidence={})

        html = page(browser_as("viewer").get(ramp_path(ramp)))

        assert "Breaker core → oracle" in html
        assert "reaker core-&gt;oracle" not in html

    def test_what_others_wrote_is_escaped(self):
        ramp = start_ramp(
            plan=gated_plan({"type": "external", "gate": "smoke"}), justification=MARKUP
        )
        first_gate_result(
            ramp, verdict="no_data", evidence={"why": NASTY, NASTY: NASTY, "deep": {"x": NASTY}}
        )
        Job.objects.update(state="holding", hold_reason=NASTY)

        html = page(browser_as("viewer").get(FINANCE))

        assert "<script>alert" not in html
        assert html.count("&lt;script&gt;alert(1)&lt;/script&gt; &amp; \u202e한국어 مرحبا 🚨") >= 4
        assert html.count("&lt;script&gt;alert(1)&lt;/script&gt; &amp; 한국어 مرحبا 🚨") >= 2

    def test_endless_evidence_is_cut(self):
        ramp = start_ramp(plan=gated_plan({"type": "external", "gate": "smoke"}))
        reported = {f"figure_{number}": number for number in range(1000)}
        evidence = {"said": "ok", "by": "token:ci", "evidence": {**reported, "long": "x" * 50_000}}
        first_gate_result(ramp, verdict="pass", evidence=evidence)

        html = page(browser_as("viewer").get(ramp_path(ramp)))

        assert len(html) < 60_000
        assert "External gate smoke: token:ci reported ok (0 figure 0, " in text(html)
        assert "more</pre>" in html

    def test_longest_plan_costs_no_more_queries_than_a_short_one(self):
        client = browser_as("viewer")
        gates = [{"type": "external", "gate": f"g{number}"} for number in range(20)]
        steps = [{"percent": 5 * (n + 1), "dwell_seconds": 60, "gates": gates} for n in range(20)]
        short, long = start_ramp("feature:a"), start_ramp("feature:b", plan=steps)

        def queries(ramp):
            with CaptureQueriesContext(connection) as caught:
                assert client.get(ramp_path(ramp, "part/")).status_code == 200
            return len(caught)

        queries(short)
        assert queries(long) == queries(short) <= 8
        # Session, person, time, ramp, steps; three for the banner.

    def test_next_step_opens_its_gates_in_place_of_those_of_the_step_before(self):
        gates = [{"type": "external", "gate": "smoke"}]
        ramp = start_ramp(plan=[{**step, "gates": gates} for step in QUICK])
        client = browser_as("approver")

        def find_open_gates():
            html = page(client.get(ramp_path(ramp, "part/")))
            return [tag["id"] for tag in Tags(html).having("details") if "open" in tag]

        before = find_open_gates()
        client.post(ramp_path(ramp, "advance/"), {"reason": REASON_TO_DO})

        # A merge keeps the reader's choice for an element with the same id.
        assert before == [f"gates-{ramp.pk}-1-present"]
        assert find_open_gates() == [f"gates-{ramp.pk}-2-present"]

    def test_holding_one_says_why_and_for_how_long(self):
        ramp = start_ramp(plan=gated_plan({"type": "external", "gate": "smoke"}))
        run_workers(61)

        content = text(page(browser_as("viewer").get(ramp_path(ramp))))

        assert "Holding" in content
        assert "no observation of smoke has been reported yet" in content
        assert "after 1 h without data the switch is engaged again" in content

    def test_aborted_one_stays_to_be_read_and_asks_no_more(self):
        ramp = start_ramp()
        browser_as("operator").post(ramp_path(ramp, "abort/"))

        client = browser_as("viewer")
        html, part = page(client.get(FINANCE)), page(client.get(ramp_path(ramp, "part/")))

        assert "Aborted by a-operator on the console." in html
        assert "user:a-operator" not in text(part)
        assert "Aborted. Aborted" not in text(part)
        assert "engaged again" in text(part)
        panel = next(tag for tag in Tags(part).having("section") if tag["id"] == f"ramp-{ramp.pk}")
        assert panel["hx-trigger"] == "refresh from:body"

    def test_completed_one_says_so(self):
        ramp = start_ramp(
            plan=[{"percent": 25, "dwell_seconds": 60}, {"percent": 100, "dwell_seconds": 0}]
        )
        run_workers(62)
        run_workers(64)

        content = text(page(browser_as("viewer").get(ramp_path(ramp))))

        assert "Completed" in content
        assert "100 %" in content
        assert not Episode.objects.filter(ended_at__isnull=True).exists()

    def test_failed_one_stands_in_red_above_every_page(self):
        ramp = start_ramp()
        client = browser_as("viewer")
        assert "could not be engaged again" not in page(client.get("/audit/"))
        why = f"It could not be engaged again: {NASTY}"
        Job.objects.update(state="failed", finished_at=db_now(), outcome=why)

        html = page(client.get("/audit/"))

        assert "A switch could not be engaged again" in html
        assert f'href="/ramps/{ramp.pk}/"' in html
        assert "<script>alert" not in html
        content = text(page(client.get(ramp_path(ramp))))
        assert "5 % may still be allowed" in content
        assert "Running" not in content
        assert "could not be engaged again" in page(browser_as("operator").get("/"))

    def test_switch_without_a_ramp_shows_none(self):
        html = page(browser_as("operator").get("/switches/feature/never/"))

        assert "ramp__line" not in html
        assert "data-abort" not in html

    @pytest.mark.parametrize("path", ["/ramps/7/", "/ramps/7/part/", f"/ramps/{10**30}/"])
    def test_ramp_that_is_not_there_is_not_found(self, path):
        assert browser_as("viewer").get(path).status_code == 404


class TestManualGate:
    def waiting(self):
        ramp = start_ramp(plan=gated_plan({"type": "manual"}))
        run_workers(61)
        return ramp, Approval.objects.get(kind="ramp_gate")

    def test_approver_decides_it_on_the_timeline(self):
        ramp, approval = self.waiting()
        client = browser_as("approver")

        html = page(client.get(FINANCE))
        client.post(f"/approvals/{approval.pk}/approve/", {"comment": ""})
        run_workers(63)

        assert f'action="/approvals/{approval.pk}/approve/"' in html
        assert Job.objects.get(pk=ramp.pk).step_index == 1

    def test_whoever_asked_for_the_ramp_may_not(self):
        user = person("approver", "ben")
        ramp = start_ramp(plan=gated_plan({"type": "manual"}), by=user)
        run_workers(61)

        html = page(browser(user).get(ramp_path(ramp)))

        assert "another person must decide" in html
        assert "/approve/" not in html

    def test_approvals_page_leads_to_the_ramp_and_its_switch(self):
        ramp, _approval = self.waiting()

        html = page(browser_as("approver").get("/approvals/"))

        assert f'href="/ramps/{ramp.pk}/"' in html
        assert 'href="/switches/segment/finance/">Open segment:finance' in html
        assert "Manual gate of step 1" in text(html)


class TestAbort:
    def test_one_press_engages_again_and_says_so(self):
        ramp = start_ramp()

        response = browser_as("operator").post(ramp_path(ramp, "abort/"), follow=True)

        assert response.redirect_chain == [(FINANCE, 302)]
        assert "Ramp aborted: segment:finance is engaged again, in version 3." in page(response)
        assert Episode.objects.get().allow_percent == 0
        entry = AuditEntry.objects.filter(action="ramp.aborted").get()
        assert "Aborted on the console" in entry.reason

    @pytest.mark.parametrize(
        ("at", "is_shown"),
        [("/", False), ("/ramps/", False), (f"{FINANCE}#effect", True), ("/ramps/{}/", True)],
    )
    def test_from_a_live_page_the_page_stays(self, at, is_shown):
        ramp = start_ramp()

        headers = {**PART, "HX-Current-URL": f"http://testserver{at.format(ramp.pk)}"}
        response = browser_as("operator").post(ramp_path(ramp, "abort/"), headers=headers)

        assert response.status_code == 204
        done = json.loads(response["HX-Trigger"])["switchgear:done"]
        assert "Ramp aborted" in done["message"]
        assert done["shown"] is is_shown

    def test_second_press_is_told_what_happened(self):
        ramp = start_ramp()
        client = browser_as("operator")
        client.post(ramp_path(ramp, "abort/"))

        response = client.post(ramp_path(ramp, "abort/"))

        assert response.status_code == 409
        assert "This ramp is aborted" in page(response)

    def test_one_that_waits_for_approval_is_withdrawn(self):
        ramp = start_ramp("global:all")

        response = browser_as("operator").post(ramp_path(ramp, "abort/"), follow=True)

        assert "Ramp withdrawn: global:all stays engaged." in page(response)
        assert Approval.objects.get().state != "pending"

    def test_viewer_may_not_and_sees_no_button(self):
        ramp = start_ramp()
        viewer = browser_as("viewer")

        assert "data-abort" not in page(viewer.get(FINANCE)) + page(viewer.get("/"))
        assert viewer.post(ramp_path(ramp, "abort/")).status_code == 403
        assert Ramp.objects.get().live

    def test_get_aborts_nothing(self):
        ramp = start_ramp()

        assert browser_as("operator").get(ramp_path(ramp, "abort/")).status_code == 405
        assert Ramp.objects.get().live

    def test_form_of_another_site_does_nothing(self):
        ramp = start_ramp()

        response = browser(person("operator"), csrf=True).post(ramp_path(ramp, "abort/"))

        assert response.status_code == 403
        assert Ramp.objects.get().live

    def test_page_has_one_abort_for_each_ramp(self):
        ramp = start_ramp()
        client = browser_as("operator")

        for path in ("/", FINANCE, ramp_path(ramp)):
            found = Tags(page(client.get(path))).having("form", data_abort=str(ramp.pk))
            assert len(found) == 1, path


class TestOther:
    @pytest.mark.parametrize("headers", [{}, DIALOG], ids=["page", "dialog"])
    def test_pause_and_resume_ask_why(self, headers):
        ramp = start_ramp()
        client = browser_as("operator")

        blank = client.post(ramp_path(ramp, "pause/"), {"reason": " "}, headers=headers)
        assert blank.status_code == 422
        assert 'aria-invalid="true"' in page(blank)
        client.post(ramp_path(ramp, "pause/"), {"reason": REASON_TO_DO}, headers=headers)
        assert Job.objects.get().state == "paused"
        assert REASON_TO_DO in page(client.get(FINANCE))

        client.post(ramp_path(ramp, "resume/"), {"reason": REASON_TO_DO}, headers=headers)
        assert Job.objects.get().state == "running"

    def test_approver_advances(self):
        ramp = start_ramp(plan=QUICK)

        response = browser_as("approver").post(
            ramp_path(ramp, "advance/"), {"reason": REASON_TO_DO}, follow=True
        )

        assert "Step 2 of segment:finance started at 100 %." in page(response)

    def test_operator_may_not_advance(self):
        ramp = start_ramp()
        client = browser_as("operator")

        assert ramp_path(ramp, "advance/") not in page(client.get(FINANCE))
        assert client.get(ramp_path(ramp, "advance/")).status_code == 403
        assert client.post(ramp_path(ramp, "advance/"), {"reason": REASON_TO_DO}).status_code == 403

    @pytest.mark.parametrize("what", ["pause/", "resume/", "advance/"])
    def test_viewer_may_do_nothing(self, what):
        ramp = start_ramp()

        client = browser_as("viewer")
        assert client.get(ramp_path(ramp, what)).status_code == 403
        assert client.post(ramp_path(ramp, what), {"reason": SAFE_NOW}).status_code == 403

    def test_what_its_state_forbids_is_told(self):
        ramp = start_ramp()

        response = browser_as("operator").post(
            ramp_path(ramp, "resume/"), {"reason": REASON_TO_DO}, headers=DIALOG
        )

        assert response.status_code == 409
        assert "can&#x27;t be resumed now" in page(response)


class TestList:
    def test_live_ones_come_first_and_are_counted_in_the_menu(self):
        over = start_ramp("feature:over")
        browser_as("operator").post(ramp_path(over, "abort/"))
        live = start_ramp("feature:live")

        html = page(browser_as("viewer").get("/ramps/"))

        assert html.index(f"ramp-row-{live.pk}") < html.index(f"ramp-row-{over.pk}")
        assert "1 ramp under way" in text(html)
        assert "Ramps 1 active" in text(html)

    def test_is_current_until_something_changes(self):
        ramp, client = start_ramp(), browser_as("viewer")
        browser_as("operator").post(ramp_path(ramp, "abort/"))
        since = AuditEntry.objects.order_by("-id").first().pk

        assert client.get("/ramps/", {"since": since}, headers=PART).status_code == 204
        start_ramp("feature:next")
        changed = page(client.get("/ramps/", {"since": since}, headers=PART))
        assert "<html" not in changed
        assert "feature:</span>next" in changed

    def test_none_yet_says_what_one_is(self):
        assert "No ramps" in page(browser_as("viewer").get("/ramps/"))


class TestBoard:
    def test_row_says_share_step_and_what_is_left(self):
        start_ramp(plan=QUICK)

        html = page(browser_as("operator").get("/"))

        assert "Ramping 5 %" in text(html)
        assert "step 1 of 2" in text(html)
        assert "left of this step" in text(html)

    def test_holding_one_says_so(self):
        start_ramp(plan=gated_plan({"type": "external", "gate": "smoke"}))
        run_workers(61)

        content = text(page(browser_as("operator").get("/")))

        assert "Holding" in content
        assert "waiting for gates" in content

    def test_engaging_it_says_that_the_ramp_is_aborted(self):
        start_ramp()
        client = browser_as("operator")
        request_body = {"scope": "segment", "key": "finance"}

        form = page(client.get("/switches/engage/", request_body))
        more = {"reason": "5xx on completions again since 03:10", "how_long": "24h"}
        plan = text(page(client.post("/switches/engage/preview/", {**request_body, **more})))

        assert "Engaging it aborts the ramp" in text(form)
        assert "which aborts its ramp" in plan
        assert Ramp.objects.get().live
