"""A real console hung, killed and started again under a client: answers stay, and then follow."""

import os
import signal
import time

import pytest

from controlplane.tests.installation import Installation, wait_until
from switchgear import Switchgear

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]
REASON = "provider outage, 5xx on completions since 02:10"
BACK_SECONDS = 60.0


@pytest.fixture(scope="module")
def installation(tmp_path_factory):
    one = Installation(tmp_path_factory.mktemp("installation") / "var")
    try:
        one.start()
        yield one
    finally:
        one.end()


@pytest.fixture
def operator(installation):
    with installation.client(installation.token("switches:read", "switches:write")) as one:
        yield one


@pytest.fixture
def token(installation):
    return installation.token("switches:read", "report:write")


@pytest.fixture
def gear(installation, token, tmp_path):
    with Switchgear(installation.url, token, service="core", state_dir=tmp_path / "state") as one:
        assert one.wait_ready(30)
        wait_until(lambda: one.status().way == "stream", 60, one.status)
        yield one


def engage(operator, key, **more):
    body = {"reason": REASON, "expires_in": "24h", **more}
    path = f"/api/v1/switches/feature/{key}/engage"
    return operator.post(path, json=body)


def stopped(gear, key):
    return lambda: not gear.allowed(feature=key)


@pytest.mark.smoke
def test_a_console_that_hangs_and_dies_costs_no_answer(installation, operator, gear):
    assert engage(operator, "hang-first").status_code == 200
    assert wait_until(stopped(gear, "hang-first"), 10, gear.status) < 5

    with installation.suspended("granian"):
        longest = ask_for(3, gear, "hang-first")
    assert longest < 2
    assert engage(operator, "hang-second").status_code == 200
    wait_until(stopped(gear, "hang-second"), BACK_SECONDS, gear.status)

    web = installation.pid_of("granian")
    os.kill(web, signal.SIGKILL)
    assert ask_for(1, gear, "hang-first") < 2
    wait_until(installation.is_ready, 60, installation.read_output)
    assert engage(operator, "hang-third").status_code == 200
    wait_until(stopped(gear, "hang-third"), BACK_SECONDS, gear.status)
    wait_until(lambda: gear.status().error is None, BACK_SECONDS, gear.status)


def test_a_console_that_hangs_for_long_is_heard_again(installation, operator, gear):
    assert engage(operator, "long-first").status_code == 200
    wait_until(stopped(gear, "long-first"), 20, gear.status)
    with installation.suspended("granian"):
        wait_until(lambda: gear.status().way == "down", 60, gear.status)
        assert not gear.allowed(feature="long-first")
        assert gear.status().age_seconds > 10
    assert engage(operator, "long-second").status_code == 200
    wait_until(stopped(gear, "long-second"), BACK_SECONDS, gear.status)
    assert gear.status().age_seconds < 30


def test_a_service_that_starts_while_all_is_down_knows_what_was_said_last(
    installation, operator, gear, tmp_path
):
    assert engage(operator, "down-first").status_code == 200
    wait_until(stopped(gear, "down-first"), 20, gear.status)
    [file] = (tmp_path / "state").glob("*.snapshot")
    wait_until(lambda: b"down-first" in file.read_bytes(), 20)
    installation.stop(within=30)

    with Switchgear(
        installation.url, "sg_x_y", service="core", state_dir=tmp_path / "state"
    ) as new:
        assert not new.allowed(feature="down-first")
        assert new.check(feature="down-first").reason == REASON
        assert new.status().source == "disk"
    assert not gear.allowed(feature="down-first")

    installation.start()
    assert engage(operator, "down-second").status_code == 200
    wait_until(stopped(gear, "down-second"), BACK_SECONDS, gear.status)


def test_an_engagement_that_ends_by_itself_ends_while_the_console_hangs(
    installation, operator, gear
):
    assert engage(operator, "short", expires_in="5s", on_expiry="release").status_code == 200
    wait_until(stopped(gear, "short"), 20, gear.status)
    with installation.suspended("granian"):
        wait_until(lambda: gear.allowed(feature="short"), 20, gear.status)


def ask_for(seconds, gear, key):
    """The longest that an answer took; all of them have to be the same."""
    longest, until_then = 0.0, time.monotonic() + seconds
    while time.monotonic() < until_then:
        began = time.monotonic()
        assert not gear.allowed(feature=key)
        longest = max(longest, time.monotonic() - began)
    return longest
