"""Tests of the page of a dependency and its forms."""

from datetime import timedelta
from uuid import uuid4

import pytest

from breakers.models import Override, Registry, Transition
from breakers.services import overrides
from breakers.templatetags.breakers import cause_words
from breakers.tests.fleet import transition
from breakers.tests.house import SHELL, dependency, discovered, minute, reports
from controlplane.core.clock import db_now
from controlplane.core.instances.models import Instance
from switches.tests.browsers import DIALOG, browser_as, page, text

pytestmark = pytest.mark.django_db

PATH = "/breakers/core/oracle/"
REASON = "Vendor confirms recovery, one bad pod flaps, INC-4411"


def forced(mode="forced_closed", expires_in="1h"):
    return overrides.set_override(
        caller="core",
        callee="oracle",
        mode=mode,
        reason=REASON,
        expires_in=expires_in,
        actor=SHELL,
        now=db_now(),
    )


def test_unknown_dependency_is_not_found():
    assert browser_as("viewer").get(PATH).status_code == 404


def test_discovered_one_has_a_page_that_says_so():
    discovered("core->oracle", db_now())

    page_text = text(page(browser_as("viewer").get(PATH)))

    assert "not registered: the caller's own settings apply" in page_text
    assert "No policy is registered: the caller's own settings apply." in page_text


def test_instances_stand_with_their_rates_and_stale_ones_marked():
    now = db_now()
    row = dependency("core->oracle", now)
    reports(row, now, "open", instance="a1", failure_rate=0.63)
    reports(row, now - timedelta(seconds=60), instance="b2")

    page_text = text(page(browser_as("viewer").get(PATH)))

    assert "core/a1 Open 63 %" in page_text
    assert page_text.count("stale") >= 2


def test_instance_behind_a_relay_is_shown_with_the_relays_name():
    now = db_now()
    row = dependency("core->oracle", now)
    reports(row, now, "open", instance="a1")
    reports(row, now, instance="b2")
    Instance.objects.filter(pk="core/a1").update(relay="eu-1")

    page_text = text(page(browser_as("viewer").get(PATH)))

    assert "core/a1 through relay eu-1 Open" in page_text
    assert "core/b2 Closed" in page_text


@pytest.mark.parametrize(
    ("ago", "shown"),
    [
        pytest.param(0, "Failing now 25 %", id="calls flow"),
        pytest.param(51, "Failing, last known 25 % no calls since", id="no calls"),
        pytest.param(None, "Failing, last known 25 %", id="no calls in a day"),
    ],
)
def test_failure_rate_is_of_now_only_while_there_are_calls(ago, shown):
    now = db_now()
    row = dependency("core->oracle", now)
    reports(row, now, failure_rate=0.25)
    if ago is not None:
        minute(row, now, ago, success=30, failure=10)

    page_text = text(page(browser_as("viewer").get(PATH)))

    assert shown in page_text
    assert ("Failing now" in page_text) is (ago == 0)


def test_transitions_are_newest_first_and_paged():
    now = db_now()
    row = dependency("core->oracle", now)
    for n in range(14):
        Transition.objects.create(
            dependency=row,
            boot=uuid4(),
            n=n,
            instance="core/a1",
            from_state="closed",
            to_state="open",
            at=now - timedelta(minutes=n),
            cause=f"cause-{n:02}",
            received_at=now,
        )
    browser = browser_as("viewer")

    first, second = page(browser.get(PATH)), page(browser.get(f"{PATH}?transitions=2"))

    assert first.index("cause-00") < first.index("cause-11")
    assert "cause-12" not in first
    assert "cause-12" in second


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        ("consecutive_failures 15 >= 15", "15 failures in a row (limit 15)"),
        ("failure_count 1 >= 1", "1 call failed (limit 1)"),
        ("failure_rate 0.60 >= 0.50", "60 % of the calls failed, limit 50 %"),
        ("slow_call_rate 1.00 >= 0.80", "100 % of the calls were slow, limit 80 %"),
        ("probes: failure_rate 0.67 >= 0.50", "67 % of the probes failed, limit 50 %"),
        ("probes: failure_rate 0.00 < 0.50", "0 % of the probes failed, below the limit of 50 %"),
        ("probes: slow_call_rate 1.00 >= 0.80", "100 % of the probes were slow, limit 80 %"),
        ("open_seconds 75.8 over", "open for 75.8 s, probing"),
        ("half_open_max_seconds 60.0 over", "a probe took longer than 60 s"),
        ("override forced_open", "override: forced open"),
        ("override ended", "the override ended"),
        ("forced_open", "forced_open"),
        ("something 1 >= 1", "something 1 >= 1"),
    ],
)
def test_causes_of_state_changes_are_in_words(cause, words):
    assert cause_words(cause) == words


def test_transition_shows_its_cause_in_words():
    now = db_now()
    row = dependency("core->oracle", now)
    transition(row, 1, "half_open>open", now, cause="probes: failure_rate 1.00 >= 0.50")

    assert "100 % of the probes failed, limit 50 %" in text(page(browser_as("viewer").get(PATH)))


def test_counters_of_the_hour_and_amplification_are_told():
    now = db_now()
    row = dependency("core->oracle", now, retry={"attempts": 3})
    dependency("canvas->core", now, retry={"attempts": 2})
    minute(row, now, 3, success=100, failure=50, retry=50, rejected=50)

    page_text = text(page(browser_as("viewer").get(PATH)))

    assert "× 1.5 attempts per call" in page_text
    assert "at worst 6 calls per request" in page_text
    assert "Rejected5025 %" in page_text.replace(" 50", "50").replace("50 25", "5025")


def test_day_counts_the_minutes_with_an_open_breaker():
    now = db_now()
    row = dependency("core->oracle", now)
    minute(row, now, 3, worst=3)
    minute(row, now, 4, worst=3)

    page_text = text(page(browser_as("viewer").get(PATH)))

    assert "open in 2 of 1,440 minutes" in page_text
    assert "half-open never" in page_text


def test_day_counts_the_minute_in_which_the_breaker_just_opened():
    now = db_now()
    row = dependency("core->oracle", now)
    minute(row, now, 1, worst=1)
    reports(row, now, "open")

    page_text = text(page(browser_as("viewer").get(PATH)))

    assert "open in 1 of 1,440 minutes" in page_text


def test_change_of_the_policy_stands_as_a_difference():
    now = db_now()
    dependency("core->oracle", now, timeout_ms=60_000)
    dependency("core->oracle", now, timeout_ms=45_000)

    html = page(browser_as("viewer").get(PATH))

    assert "<del>60000</del>" in html
    assert "<ins>45000</ins>" in html


def test_runbook_leads_out_without_a_referrer():
    dependency("core->oracle", db_now(), runbook_url="https://wiki/oracle")

    html = page(browser_as("viewer").get(PATH))

    assert '<a class="button" href="https://wiki/oracle" target="_blank" rel="noopener' in html


def test_override_shows_who_has_confirmed_it_and_who_has_not():
    now = db_now()
    row = dependency("core->oracle", now)
    override = forced()
    reports(row, now, instance="new", config_version=override.version)
    reports(row, now, instance="old", config_version=override.version - 1)

    page_text = text(page(browser_as("viewer").get(PATH)))

    assert "Confirmed by 1 of 2 instances" in page_text
    assert "Not confirmed by core/old" in page_text


def test_override_nobody_reports_for_says_so():
    dependency("core->oracle", db_now())
    forced()

    page_text = text(page(browser_as("viewer").get(PATH)))

    assert "No instance of core is reporting, so none has confirmed it." in page_text


def test_operator_forces_a_state_from_the_dialog():
    dependency("core->oracle", db_now())
    browser = browser_as("operator")

    response = browser.post(
        f"{PATH}override/",
        {"mode": "forced_open", "reason": REASON, "how_long": "15m"},
        headers=DIALOG,
    )

    override = Override.objects.get()
    assert (response.status_code, "refresh" in response["HX-Trigger"]) == (200, True)
    assert "core → oracle: forced open" in text(page(response))
    assert 'action="/breakers/core/oracle/override/undo/"' in page(response)
    assert (override.mode, override.expires_at - override.set_at) == (
        "forced_open",
        timedelta(minutes=15),
    )


def test_plain_form_leads_back_to_the_page():
    dependency("core->oracle", db_now())

    response = browser_as("operator").post(
        f"{PATH}override/",
        {"mode": "disabled", "reason": REASON, "how_long": "other", "other": "90s"},
    )

    assert (response.status_code, response["Location"]) == (302, PATH)
    assert Override.objects.get().expires_at - Override.objects.get().set_at == timedelta(
        seconds=90
    )


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"mode": ""}, "Choose a mode."),
        ({"reason": "stop"}, "too short"),
        ({"how_long": "other", "other": "soon"}, "whole number and a unit"),
        ({"how_long": "other", "other": "31d"}, "Must be at most 30 days"),
    ],
)
def test_what_is_wrong_is_told_and_what_was_typed_stays(wrong, message):
    dependency("core->oracle", db_now())
    arguments = {"mode": "forced_open", "reason": REASON, "how_long": "1h", **wrong}

    response = browser_as("operator").post(f"{PATH}override/", arguments, headers=DIALOG)

    assert response.status_code == 422
    assert message in text(page(response))
    assert arguments["reason"] in page(response)
    assert not Override.objects.exists()


def test_operator_stops_forcing():
    dependency("core->oracle", db_now())
    forced()

    response = browser_as("operator").post(f"{PATH}override/remove/", {}, headers=DIALOG)

    assert response.status_code == 204
    assert Override.objects.get().ended_why == "removed"


def test_nothing_forced_any_more_is_a_refusal_not_an_error():
    dependency("core->oracle", db_now())

    response = browser_as("operator").post(f"{PATH}override/remove/", {}, headers=DIALOG)

    assert response.status_code == 409
    assert "core-&gt;oracle has no override" in page(response)


@pytest.mark.parametrize("action", ["override/", "override/remove/", "edit/", "remove/"])
def test_viewer_may_change_nothing(action):
    dependency("core->oracle", db_now())
    before = Registry.objects.get().version

    browser = browser_as("viewer")
    arguments = {"mode": "forced_open", "reason": REASON, "how_long": "1h", "do": "save"}

    assert browser.get(f"{PATH}{action}").status_code == 403
    assert browser.post(f"{PATH}{action}", arguments).status_code == 403
    assert Registry.objects.get().version == before


def test_state_that_was_the_worst_of_no_minute_is_counted_by_its_changes():
    now = db_now()
    row = dependency("core->oracle", now)
    minute(row, now, 3, worst=3)
    for number, ago in enumerate([timedelta(minutes=3), timedelta(minutes=2), timedelta(days=2)]):
        Transition.objects.create(
            dependency=row,
            boot=uuid4(),
            n=number,
            instance="core/a1",
            from_state="open",
            to_state="half_open",
            at=now - ago,
            received_at=now,
        )

    page_text = text(page(browser_as("viewer").get(PATH)))

    assert "open in 1 of 1,440 minutes" in page_text
    assert "half-open 2 times, briefly" in page_text


def test_counters_say_until_when_calls_were_counted():
    now = db_now()
    row = dependency("core->oracle", now)
    minute(row, now, 5, success=100)
    last = minute(row, now, 3, rejected=1)
    minute(row, now, 1, worst=3)

    page_text = text(page(browser_as("viewer").get(PATH)))

    assert f"Last counted call: {last.minute:%H:%M}. Later calls may be missing." in page_text
    assert f"last call {last.minute:%H:%M}" in page_text


def test_counters_without_calls_have_no_time():
    dependency("core->oracle", db_now())

    assert "Last counted call" not in text(page(browser_as("viewer").get(PATH)))


def test_removed_one_keeps_its_page():
    dependency("core->oracle", db_now())
    browser = browser_as("admin")

    browser.post(f"{PATH}remove/", {"reason": "core calls it no more"})
    page_text = text(page(browser.get(PATH)))

    assert "removed" in page_text
    assert "core calls it no more" in page_text
    assert "Force the breaker" not in page_text


@pytest.mark.parametrize(
    ("hops", "message"), [(3, "at worst 16 calls per request"), (9, "at least")]
)
def test_chain_that_was_not_followed_to_its_end_is_at_least_so_long(hops, message):
    now = db_now()
    for number in range(hops):
        dependency(f"s{number + 1}->s{number}", now, retry={"attempts": 2})
    dependency("s0->oracle", now, retry={"attempts": 2})

    page_text = text(page(browser_as("viewer").get("/breakers/s0/oracle/")))

    assert message in page_text


def test_chain_says_of_which_dependencies_no_report_is_known():
    now = db_now()
    dependency("canvas->core", now)
    minute(dependency("core->oracle", now), now, 3, worst=1)

    page_text = text(page(browser_as("viewer").get(PATH)))

    assert "No data of canvas → core." in page_text


def test_chain_whose_dependencies_all_reported_has_no_mark():
    now = db_now()
    minute(dependency("core->oracle", now), now, 3, worst=1)

    assert "No data of" not in text(page(browser_as("viewer").get(PATH)))


def test_chain_without_retries_has_one_call_per_request():
    dependency("core->oracle", db_now())

    assert "at worst 1 call per request" in text(page(browser_as("viewer").get(PATH)))
