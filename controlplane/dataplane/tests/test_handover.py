"""The lock that tells the web process that a stand-in still answers on its port."""

import subprocess
import sys
from pathlib import Path

from controlplane.dataplane.storage import handover

HOLDING = """
import sys
from pathlib import Path
from controlplane.dataplane.storage import handover

handover.hold_lock(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


def test_handover_is_pending_while_the_stand_in_runs(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    command = [sys.executable, "-c", HOLDING, str(tmp_path)]

    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as stand_in:
        assert stand_in.stdout is not None
        assert stand_in.stdout.readline() == b"held\n"
        assert handover.is_pending(tmp_path)
        stand_in.kill()

    assert not handover.is_pending(tmp_path)


def test_handover_is_not_pending_where_no_stand_in_ever_ran(tmp_path: Path) -> None:
    assert not handover.is_pending(tmp_path)


def test_stand_in_that_can_not_hold_the_lock_runs_all_the_same(tmp_path: Path) -> None:
    handover.hold_lock(tmp_path / "missing")

    assert not handover.is_pending(tmp_path / "missing")
