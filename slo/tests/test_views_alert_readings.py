"""An alert's page and row say what its rule says now, and why it has no data."""

import re
from datetime import datetime, timedelta

import pytest

from breakers.tests.registered import dependency
from controlplane.core.clock import db_now
from controlplane.core.jobs.models import Job
from controlplane.core.trip_requests.models import TripRequest
from slo.arithmetic.minutes import end_of, last_ended
from slo.models import Alert, Sli, Slo, SloStatus
from switches.models import Episode, Ramp
from switches.tests.browsers import browser_as, engaged, page, text
from switches.tests.instances import report_checks

from . import factories
from .month_of_events import alert

pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)
RULE = {"long": "1h", "short": "5m", "burn_rate": 14, "severity": "page"}
OPENING = {"1h": {"burn_rate": 18.2, "bad": 91, "total": 5000, "coverage": 1.0}}
NL2SQL = "feature:nl2sql"


def set_status(slo: Slo, state: str, now: datetime, *, age: int = 0, **fields) -> None:
    """Store a status evaluated `age` minutes ago, in its state for 52 minutes."""
    SloStatus.objects.create(
        slo=slo,
        state=state,
        minute=last_ended(now) - age,
        since=now - 52 * MINUTE,
        rules=[{**RULE, "state": state}],
        **{"burn_rates": {"1h": 18.2, "5m": None}, **fields},
    )


def create_silent_alert(now: datetime, **fields) -> Alert:
    """Return an open alert of an SLO of oracle, without data for 52 minutes."""
    slo = factories.slo("oracle-answers", service="oracle", **fields)
    set_status(slo, "unknown", now)
    evidence = {"burn_rate": 14, "windows": OPENING}
    return alert(slo, now - 60 * MINUTE, None, evidence=evidence, firing_at=now)


def block_callers(now: datetime, *, since: timedelta) -> None:
    """Engage the switch that core, the caller of oracle, checks."""
    dependency(now, "core->oracle")
    report_checks("core/a1", NL2SQL, at=now, per_second=2)
    engaged(NL2SQL, now=now - since)


def get_page(path: str) -> str:
    return get_pages(path)[0]


def get_pages(*paths: str) -> list[str]:
    browser = browser_as("viewer")
    return [page(browser.get(path)) for path in paths]


def test_alert_without_data_names_the_switch_that_blocks_its_traffic():
    now = db_now()
    one = create_silent_alert(now)
    block_callers(now, since=57 * MINUTE)

    content = text(get_page(f"/alerts/{one.pk}/"))

    assert f"No data since {now - 52 * MINUTE:%H:%M}" in content
    assert "Likely cause: its traffic is blocked." in content
    assert "feature:nl2sql Engaged" in content
    assert "core checks it and calls oracle." in content
    assert "Firing now" not in content
    assert "1h now no data" not in content
    assert "5m now" not in content


def test_switch_whose_ramp_gate_names_the_slo_is_named_as_the_cause():
    now = db_now()
    one = create_silent_alert(now)
    engaged("experiment:rag-v2", now=now - 57 * MINUTE)
    episode = Episode.objects.get()
    gate = {"type": "slo", "slo": "oracle-answers", "window": "5m", "max_burn_rate": 1}
    Ramp.objects.create(
        job=Job.objects.create(kind="ramp", subject=episode.switch_id, created_at=now),
        switch=episode.switch, episode=episode, requested_by_type="user", requested_by_name="kim",
        plan=[{"percent": 5, "dwell_seconds": 300, "gates": [gate]}],
    )  # fmt: skip

    content = text(get_page(f"/alerts/{one.pk}/"))

    assert "experiment:rag-v2 Engaged" in content
    assert "a gate of its ramp checks this SLO." in content
    assert "No known cause" not in content


@pytest.mark.parametrize("since", [30 * MINUTE, timedelta(days=2)], ids=["later", "long before"])
def test_switch_engaged_at_another_time_is_no_cause(since):
    now = db_now()
    one = create_silent_alert(now)
    block_callers(now, since=since)

    content = text(get_page(f"/alerts/{one.pk}/"))

    assert "No known cause" in content
    assert "nl2sql" not in content


def test_alert_without_data_says_that_its_source_cannot_be_read():
    now = db_now()
    one = create_silent_alert(now)
    Sli.objects.update(source_error="connection refused <b>", source_error_since=now - 50 * MINUTE)

    html = get_page(f"/alerts/{one.pk}/")

    assert "Its source can't be read since" in text(html)
    assert "connection refused &lt;b&gt;" in html
    assert "No known cause" not in html


@pytest.mark.parametrize(
    ("state", "age", "shown"),
    [
        pytest.param("firing", 0, "Firing now 18.2× over 1h, unknown over 5m", id="firing"),
        pytest.param("ok", 0, "Not firing now 18.2× over 1h", id="below its limit"),
        pytest.param("firing", 52, "No evaluation since", id="not evaluated"),
    ],
)
def test_page_row_and_slo_say_what_the_rule_says_now(state, age, shown):
    now = db_now()
    slo = factories.slo()
    set_status(slo, state, now, age=age)
    one = alert(slo, now - 60 * MINUTE, None, evidence={"burn_rate": 14, "windows": OPENING})

    pages = [*map(text, get_pages(f"/alerts/{one.pk}/", "/alerts/", f"/slos/{slo}/"))]

    assert [shown in content for content in pages] == [True] * 3
    assert ("1h now" in pages[0]) is (age == 0)
    if age:
        assert [" now" in content and "Firing now" in content for content in pages] == [False] * 3


def test_resolved_alert_keeps_to_what_it_was():
    now = db_now()
    slo = factories.slo()
    set_status(slo, "firing", now)
    windows = {"evidence": {"windows": OPENING}, "latest": {"windows": OPENING}}
    one = alert(slo, now - 60 * MINUTE, 5, **windows, latest_at=now - 57 * MINUTE)

    content = text(get_page(f"/alerts/{one.pk}/"))

    assert "1h when it fired last" in content
    # A time of yesterday is shown with its date.
    assert re.search(rf"Last fired [^.]{{0,9}}{now - 57 * MINUTE:%H:%M}", content)
    assert "Firing now" not in content


def test_chip_of_a_switch_is_its_state_now():
    now = db_now()
    one = create_silent_alert(now)
    engaged("experiment:rag-v2", now=now - 58 * MINUTE)
    Episode.objects.update(allow_percent=25)
    TripRequest.objects.create(
        key="k", switch="experiment:rag-v2", source="slo:oracle-answers", reason="r",
        fingerprint=f"alert:{one.pk}", requested_at=now - 59 * MINUTE,
        decided_at=now - 58 * MINUTE, tripped=True,
    )  # fmt: skip

    content = text(get_page(f"/alerts/{one.pk}/"))

    assert "experiment:rag-v2 Ramping 25 %" in content
    assert "Engaged by this alert at" in content


def test_threshold_value_that_is_old_is_not_called_now():
    now = db_now()
    one = Alert.objects.create(
        kind="threshold", rule="timeout_rate", subject="core->oracle", severity="warning",
        summary="Calls of core->oracle timed out", opened_at=now - 60 * MINUTE, firing_at=now,
        evidence={"limit": 0.01}, latest={"value": 0.25}, latest_at=now - 52 * MINUTE,
    )  # fmt: skip

    content = text(get_page(f"/alerts/{one.pk}/"))

    assert f"Not seen since {now - 52 * MINUTE:%H:%M}" in content
    assert "Last value 0.25" in content
    assert "Now 0.25" not in content


def test_attention_says_what_the_rule_says_now_and_why():
    now = db_now()
    create_silent_alert(now)
    block_callers(now, since=57 * MINUTE)

    content = text(get_page("/attention/"))

    since = end_of(last_ended(now)) and now - 52 * MINUTE
    assert f"No data since {since:%-d %b %H:%M} UTC" in content
    assert "Likely cause: feature:nl2sql" in content
