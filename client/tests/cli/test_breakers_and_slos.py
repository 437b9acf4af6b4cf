"""Breakers and SLOs from a shell, against a real console."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from controlplane.tests.installation import wait_until
from switchgear.cli import exits

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(180)]
WHY = ("--reason", "Oracle answers with wrong figures")


@pytest.fixture
def reported(api):
    """Report an instance of core whose breaker to oracle is open."""
    now = datetime.now(UTC).isoformat()
    moved = {"n": 1, "from": "closed", "to": "open", "at": now, "cause": "5 failures in 60 s"}
    breaker = {
        "dependency": "core->oracle", "state": "open", "mode": "normal", "since": now,
        "failure_rate": 0.6, "slow_rate": 0.0, "calls": 20,
        "counters": {"success": 8, "failure": 12}, "transitions": [moved],
    }  # fmt: skip
    report = {
        "service": "core", "instance": "core-7f9c", "boot": str(uuid4()), "started_at": now,
        "seq": 1, "sent_at": now, "applied_version": 0, "breakers": [breaker],
    }  # fmt: skip
    wait_until(lambda: api.post("/report", json=report).status_code == 200, 20)
    api.put("/dependencies/core/oracle/", json={"protocol": "http"}).raise_for_status()


def test_open_breaker_is_shown_with_who_has_it_and_why(admin, reported):
    listed = admin("breakers")
    history = admin("breakers", "history", "core->oracle")
    shown = admin("breakers", "show", "core/oracle", "--json").json

    assert "OPEN" in listed.out
    assert "1 open" in listed.out
    assert "5 failures in 60 s" in history.out
    assert shown["breaker"]["state"] == "open"
    assert shown["dependency"]["protocol"] == "http"


def test_breaker_is_forced_reset_and_let_be(admin, reported):
    forced = admin("breakers", "override", "core/oracle", "forced_open", "--for", "30m", *WHY)
    listed = admin("breakers")
    cleared = admin("breakers", "clear", "core/oracle", *WHY)
    again = admin("breakers", "clear", "core/oracle", *WHY)
    reset = admin("breakers", "reset", "core/oracle", *WHY, "--json")

    assert (forced.code, cleared.code, reset.code) == (0, 0, 0)
    assert "in 30 min" in forced.out
    assert "FORCED OPEN" in listed.out
    assert "ended" in cleared.out
    assert again.code != 0
    assert reset.json["mode"] == "reset"


def test_unknown_breaker_and_slo_end_with_3(admin):
    assert admin("breakers", "show", "no/body").code == exits.NOT_FOUND
    assert admin("slo", "show", "nothing").code == exits.NOT_FOUND
    assert admin("slo", "ack", "4711").code == exits.NOT_FOUND


def test_slo_shows_burn_rates_and_budget(admin, api):
    start = datetime.now(UTC) - timedelta(minutes=80)
    points = [
        {"slo": "checkout", "source": "t", "boot": "b", "good": 960 * n, "total": 1000 * n,
         "at": (start + timedelta(minutes=n)).isoformat()}
        for n in range(80)
    ]  # fmt: skip
    api.put("/slos/checkout/", json={"target": 0.999}).raise_for_status()
    api.post("/sli/", json={"points": points}).raise_for_status()

    shown = admin("slo", "show", "checkout")
    document = admin("slo", "show", "checkout", "--json").json
    listed = admin("slo", "--json").json
    alerts = admin("slo", "alerts")

    assert "FIRING" in shown.out
    assert "99.9 %" in shown.out
    assert document["status"]["burn_rates"]["1h"] == pytest.approx(40)
    assert [slo["name"] for slo in listed] == ["checkout"]
    assert alerts.code == 0
