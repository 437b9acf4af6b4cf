"""A service's policy, driven by a real console from a shell, and what the console sees of it."""

import pytest

from controlplane.tests.installation import wait_until
from switchgear import CircuitOpen
from tests.quick_client import PromptClient

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(180)]
WHY = ("--reason", "Oracle answers with wrong figures")


@pytest.fixture
def _forgotten(web_process):
    """Restart the console after the test: it may write a heartbeat of its client 10 s later."""
    yield
    web_process.kill()
    web_process.start(ready_within=90)


@pytest.mark.slow
@pytest.mark.usefixtures("_forgotten")
def test_policy_follows_overrides_and_is_seen_by_operators(admin, api):
    policy = {"timeout_ms": 500, "breaker": {"failure_threshold": 2, "window_seconds": 60}}
    api.put("/dependencies/core/oracle/", json=policy).raise_for_status()
    with PromptClient(admin.url, admin.token, service="core", state_dir=None) as gear:
        oracle = gear.policy("core->oracle", fallback=lambda: "instead")
        ask = oracle(lambda: "itself")
        wait_until(lambda: oracle.timeout_seconds == 0.5, 30)
        assert oracle.breaker.parameters.failure_count == 2

        forced = admin("breakers", "override", "core/oracle", "forced_open", "--for", "30m", *WHY)
        assert forced.code == 0
        wait_until(lambda: ask() == "instead", 30)

        def acknowledged():
            row = api.get("/dependencies/core/oracle/").json()
            return (row["override"] or {}).get("acknowledged", {}).get("applied") == 1

        wait_until(acknowledged, 30)
        api.delete("/dependencies/core/oracle/override").raise_for_status()
        wait_until(lambda: ask() == "itself", 30)

        for _ in range(2):
            with pytest.raises(TimeoutError), oracle:
                raise TimeoutError("it is too slow")
        with pytest.raises(CircuitOpen), oracle:
            raise AssertionError("it was entered")

        def history():
            rows = api.get("/breakers/core/oracle/history").json()["results"]
            return {row["cause"] for row in rows}

        wait_until(lambda: "failure_count 2 >= 2" in history(), 30)
