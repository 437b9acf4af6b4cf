"""Random faults against a whole installation: each response is compared with the audit trail.

`CHAOS_SECONDS` is the duration of the faults, `CHAOS_SEED` selects them.
"""

import os
import random
from collections.abc import Mapping
from pathlib import Path

import pytest

from controlplane.notify.delivery.tests.fake_slack import fake_slack
from controlplane.tests.chaos.plan import KINDS, Kind
from controlplane.tests.chaos.prepare import prepared
from controlplane.tests.installation import running

SECONDS = float(os.environ.get("CHAOS_SECONDS", "300"))
SEED = int(os.environ.get("CHAOS_SEED", random.SystemRandom().randrange(10**6)))
AROUND_SECONDS = 600
"""For the start, draining the outbox, and a busy machine."""
SHORT_SEED, SHORT_SECONDS = 31, 35.0
BOT = {"SLACK_BOT_TOKEN": "xoxb-1234-secret", "SLACK_CHANNEL": "C0000OPS"}
pytestmark = pytest.mark.faults


@pytest.mark.timeout(SECONDS + AROUND_SECONDS)
def test_random_faults_lose_no_change_and_tell_no_reader_anything_else(tmp_path: Path) -> None:
    _run(SEED, SECONDS, KINDS, tmp_path)


@pytest.mark.smoke
@pytest.mark.timeout(SHORT_SECONDS + AROUND_SECONDS)
def test_some_faults_lose_no_change_and_tell_no_reader_anything_else(tmp_path: Path) -> None:
    """A short version for CI: fixed faults, without a restart of the whole installation."""
    kinds = {name: kind for name, kind in KINDS.items() if name != "supervisor.kill"}
    _run(SHORT_SEED, SHORT_SECONDS, kinds, tmp_path)


def _run(seed: int, seconds: float, kinds: Mapping[str, Kind], folder: Path) -> None:
    print(f"\nCHAOS_SEED={seed} CHAOS_SECONDS={seconds:g}", flush=True)
    with (
        fake_slack() as slack,
        running(folder / "var", SLACK_API_URL=f"{slack.url}/api", **BOT) as installation,
        prepared(seed, installation, slack, folder) as run,
    ):
        run.inflict(seconds, kinds)
        run.converge()
        run.drain()
        run.end()
        run.judge()
        print(run.report())
        assert not run.problems, run.report()
