"""The data directory: who may read it, and who holds it."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from controlplane.supervisor import layout
from controlplane.supervisor.failure import CannotRun
from controlplane.supervisor.file_lock import Lock, LockHeld, remove_abandoned


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_folders_are_private(tmp_path: Path) -> None:
    place = layout.create_layout(tmp_path / "new" / "data")

    assert _mode(place.data) == (0o711 if os.geteuid() == 0 else 0o700)
    for folder in (place.run, place.secrets, place.log, place.redis):
        assert _mode(folder) == 0o700


def test_an_existing_folder_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir(mode=0o700)

    layout.create_layout(tmp_path / "data")

    assert _mode(tmp_path / "data") == 0o700


def test_a_secret_is_made_once_and_nobody_else_reads_it(tmp_path: Path) -> None:
    place = layout.create_layout(tmp_path / "data")

    first = place.secret_or_new("redis")

    assert place.secret_or_new("redis") == first
    assert len(first) >= 32
    assert _mode(place.secrets / "redis") == 0o600
    assert [path.name for path in place.secrets.iterdir()] == ["redis"]


def test_a_data_directory_that_is_a_file_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")

    with pytest.raises(CannotRun, match=r"^SWITCHGEAR_DATA_DIR: .*data") as refused:
        layout.create_layout(tmp_path / "data")

    assert refused.value.exit_code == 2


def test_a_held_lock_names_its_holder(tmp_path: Path) -> None:
    lock = Lock(tmp_path / "lock")

    with pytest.raises(LockHeld, match=f"process {os.getpid()} holds"):
        Lock(tmp_path / "lock")

    lock.release()
    assert not (tmp_path / "lock").exists()
    Lock(tmp_path / "lock").release()


def test_a_killed_holder_leaves_the_lock_free(tmp_path: Path) -> None:
    source = (
        "import os, sys, pathlib; from controlplane.supervisor.file_lock import Lock;"
        "Lock(pathlib.Path(sys.argv[1])); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", source, str(tmp_path / "lock")], check=False)
    assert (tmp_path / "lock").exists()

    Lock(tmp_path / "lock").release()


def test_abandoned_folders_go_and_locked_or_young_ones_stay(tmp_path: Path) -> None:
    for name in ("t-left", "t-locked", "t-young", "other"):
        (tmp_path / name).mkdir()
    lock = Lock(tmp_path / "t-locked" / "lock")
    for name in ("t-left", "t-locked", "other"):
        os.utime(tmp_path / name, (0, 0))

    remove_abandoned(tmp_path, "t-")

    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "t-locked", "t-young"]
    lock.release()
