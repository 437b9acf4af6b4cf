"""The scenarios end as they say, run as a user runs them."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.service_processes import EXAMPLES, environment

SCENARIOS = EXAMPLES / "scenarios"
SAYS = {
    "rate_limited_provider": """\
'first: 13 letters' by call; 3 tries of the first so far, 2 of them retries; breaker closed
'second: 15 letters' by second; 6 tries of the first so far, 4 of them retries; breaker open
'second: 15 letters' by second; 6 tries of the first so far, 4 of them retries; breaker open
'second: 15 letters' by second; 6 tries of the first so far, 4 of them retries; breaker open
""",
    "slow_search": """\
10 answered without a search
4 ended after 0.2 s
6 turned away at once
all within two seconds: True
""",
    "expired_credential": """\
told people: core->registry: Unauthorised: the token expired yesterday
C-1: persistent, tried again: False
C-2: persistent, tried again: False
C-3: persistent, tried again: False
3 calls, advice: fix the credential, the call or the code; don't retry
""",
    "bad_release": """\
released: 200 of 200 get the new model
stopped: 0 of 200 get the new model
ramp at 5 %: 10 get it, and nobody is sent away: True
ramp at 25 %: 63 get it, and nobody is sent away: True
ramp at 99 %: 199 get it, and nobody is sent away: True
mended: 200 of 200 get the new model
""",
    "flooding_user": """\
choi: 1 answered
flood: 2 answered
flood: 998 turned away
kim: 1 answered
lee: 1 answered
a thousand failures made less than 1300 calls: True
""",
    "suspected_leak": """\
told people: core->totals: ForeignRows
kim: no answer, and none of yesterday instead
kim: stopped by global:all: Totals of other tenants are shown, INC-4711
lee: stopped by global:all: Totals of other tenants are shown, INC-4711
""",
}


def test_every_scenario_is_run_here() -> None:
    assert {path.stem for path in SCENARIOS.glob("*.py")} == SAYS.keys()


@pytest.mark.parametrize("name", SAYS)
def test_a_scenario_ends_as_it_says(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, SCENARIOS / f"{name}.py"],
        env=environment(None, tmp_path),
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == SAYS[name]
