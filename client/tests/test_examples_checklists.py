"""The checklists find what is missing, run as a user runs them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.service_processes import EXAMPLES, environment

CHECKLISTS = EXAMPLES / "checklists"
CARELESS = """
from switchgear import BreakerParameters, BulkheadParameters, RetryParameters, Switchgear

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
# It has everything, and nothing of it protects.
shams = [
    gear.policy(
        "shop->stock",
        feature="stock",
        timeout_seconds=2,
        deadline_seconds=5,
        retry=RetryParameters(retry_on=(400, 408, 429, 500)),
        bulkhead=BulkheadParameters(limit=10**6),
        breaker=BreakerParameters(
            failure_rate=1.0, minimum_calls=10_000, window_size=10_000, half_open_concurrent=6
        ),
    ),
    gear.policy(
        "shop->mail",
        timeout_seconds=2,
        deadline_seconds=5,
        bulkhead=BulkheadParameters(limit=1, queue=10**6),
        breaker=BreakerParameters(failure_count=1_000_000),
        feature="mail",
        fallback=None,
    ),
]
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
    code, lines = run(checklist, "shop:policies", tmp_path)

    assert (code, lines) == (0, ["20 of 20 met, for 2 dependencies"])


def list_missing(lines: list[str], policy: str = "stock") -> list[str]:
    return [line.partition(": ")[2] for line in lines if line.startswith(f"MISSING {policy}: ")]


def test_what_a_careless_service_lacks_before_deployment_is_named(tmp_path: Path) -> None:
    code, lines = run("pre_deployment", "careless:policies", tmp_path)

    assert code == 1
    assert [line.split(" (")[0].split(",")[0] for line in list_missing(lines)] == [
        "a time limit for each try",
        "a deadline for the whole call",
        "at most 5 attempts",
        "a limit of calls at once",
        "a fallback",
        "a kill switch around it",
    ]
    assert lines[-1] == "4 of 10 met, for 1 dependencies"


def test_what_is_wrong_with_a_careless_breaker_is_named(tmp_path: Path) -> None:
    code, lines = run("breaker_setup", "careless:policies", tmp_path)

    assert code == 1
    assert [line.split(". ")[0] for line in list_missing(lines)] == [
        "a name such as caller->callee",
        "a share of at least 10 calls, or at least 5 failures",
        "a timeout, or slow_call_seconds",
        "jitter in how long it stays open (open_jitter)",
        "open for 5 to 120 seconds at first",
        "few probes (half_open_calls up to 20)",
        "an end for each probe (a timeout, within half_open_max_seconds if that is set)",
    ]
    assert lines[-1] == "3 of 10 met, for 1 dependencies"


def test_policies_that_protect_nothing_do_not_pass(tmp_path: Path) -> None:
    lines = [
        *run("pre_deployment", "careless:shams", tmp_path)[1],
        *run("breaker_setup", "careless:shams", tmp_path)[1],
    ]

    assert [line.split(". ")[0] for line in list_missing(lines, "shop->stock")] == [
        "retry_on without 4xx, but for 408 and 429",
        "at most 1000 calls at once, and as many that wait",
        "a fallback, or fallback=None if nothing can stand in",
        "a failure_rate of at most 0.8",
        "at most 500 calls, or failures, until it may open",
        "no more concurrent probes than in total (half_open_concurrent)",
    ]
    assert [line.split(". ")[0] for line in list_missing(lines, "shop->mail")] == [
        "at most 1000 calls at once, and as many that wait",
        "at most 500 calls, or failures, until it may open",
    ]


@pytest.mark.parametrize(
    ("policies", "code"),
    [
        pytest.param("careless:none", 1, id="a service without any policy"),
        pytest.param("", 2, id="a wrong use"),
    ],
)
def test_what_can_not_pass_has_its_exit_code(policies: str, code: int, tmp_path: Path) -> None:
    assert run("pre_deployment", policies, tmp_path)[0] == code
