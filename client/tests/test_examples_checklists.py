"""The checklists find what is missing, run as a user runs them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.services import EXAMPLES, environment

CHECKLISTS = EXAMPLES / "checklists"
CARELESS = """
from switchgear import BreakerParameters, RetryParameters, Switchgear

gear = Switchgear(None)
policies = [
    gear.policy(
        "stock",
        retry=RetryParameters(attempts=9),
        breaker=BreakerParameters(
            failure_count=2, open_jitter=0, open_seconds=1, half_open_calls=500
        ),
    )
]
none = []
"""


def run(checklist: str, named: str, folder: Path) -> tuple[int, list[str]]:
    (folder / "careless.py").write_text(CARELESS)
    env = environment(None, folder)
    paths = (env["PYTHONPATH"], str(CHECKLISTS), str(folder))
    done = subprocess.run(
        [sys.executable, CHECKLISTS / f"{checklist}.py", *([named] if named else [])],
        env={**env, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout.splitlines()


@pytest.mark.parametrize("checklist", ["pre_deployment", "breaker_setup"])
def test_a_service_that_has_everything_passes(checklist: str, tmp_path: Path) -> None:
    code, said = run(checklist, "shop:policies", tmp_path)

    assert (code, said) == (0, ["14 of 14 met, for 2 dependencies"])


def wanted(said: list[str]) -> list[str]:
    return [line.partition(": ")[2] for line in said if line.startswith("MISSING stock: ")]


def test_what_a_careless_service_lacks_before_deployment_is_named(tmp_path: Path) -> None:
    code, said = run("pre_deployment", "careless:policies", tmp_path)

    assert code == 1
    assert [line.split(" (")[0].split(",")[0] for line in wanted(said)] == [
        "a time limit for each try",
        "a deadline for the whole call",
        "at most 5 attempts",
        "a limit of calls at once",
        "a kill switch around it",
    ]
    assert said[-1] == "2 of 7 met, for 1 dependencies"


def test_what_is_wrong_with_a_careless_breaker_is_named(tmp_path: Path) -> None:
    code, said = run("breaker_setup", "careless:policies", tmp_path)

    assert code == 1
    assert [line.split(". ")[0] for line in wanted(said)] == [
        "a name such as caller->callee",
        "a share of at least 10 calls, or at least 5 failures",
        "a timeout, or slow_call_seconds",
        "jitter in how long it stays open (open_jitter)",
        "open for 5 to 120 seconds at first",
        "few probes (half_open_calls up to 20)",
    ]
    assert said[-1] == "1 of 7 met, for 1 dependencies"


def test_a_service_without_any_policy_does_not_pass(tmp_path: Path) -> None:
    assert run("pre_deployment", "careless:none", tmp_path)[0] == 1


def test_a_wrong_use_is_told_apart(tmp_path: Path) -> None:
    assert run("pre_deployment", "", tmp_path)[0] == 2
