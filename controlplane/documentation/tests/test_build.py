"""Builds of the site that are stopped, or run at the same time."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from controlplane.documentation import build, build_lock
from controlplane.documentation.manifest import write_manifest


@pytest.mark.slow
def test_stopped_build_ends_at_once_and_releases_its_lock(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    command = [sys.executable, "-m", "controlplane.documentation.build", str(folder)]
    with subprocess.Popen(command, cwd=build.ROOT) as process:
        ends = time.monotonic() + 100
        while not (drafts := list(tmp_path.glob("docs.*/"))) and time.monotonic() < ends:
            time.sleep(0.01)
        is_held = build_lock.is_held(folder)
        process.terminate()

    assert drafts
    assert is_held
    assert process.returncode == -signal.SIGTERM
    assert not folder.exists()
    assert not build_lock.is_held(folder)


def test_build_removes_what_stopped_ones_left_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = ["docs.0123456789ab", "docs.ba9876543210.old"]
    others = ["docs.d", "docs.old", "docs.0123456789ab.new", "mydocs.0123456789ab"]
    for name in (*left, *others):
        (tmp_path / name).mkdir()
        (tmp_path / name / "index.html").touch()
    monkeypatch.setattr(
        "mkdocs.commands.build.build", lambda config: Path(config["site_dir"]).mkdir()
    )

    assert build.build(tmp_path / "docs", "sources", is_strict=False) == 0

    assert {path.name for path in tmp_path.iterdir()} == {"docs", *others}


def test_present_site_in_a_folder_that_cannot_be_written_is_kept(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    write_manifest(folder, build.hash_sources(build.ROOT))
    (tmp_path / "docs.lock").mkdir()  # Refused even to root, like a file of a read-only folder.

    assert build.main([str(folder)]) == 0


def test_lock_ends_with_the_build_although_a_child_inherited_it(tmp_path: Path) -> None:
    with build_lock.hold_lock(tmp_path / "docs"):
        child = os.fork()
        if child == 0:
            time.sleep(30)
            os._exit(0)
    try:
        assert not build_lock.is_held(tmp_path / "docs")
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_builds_at_the_same_time_leave_one_site(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    failed = []

    def replace_often(name: str) -> None:
        for number in range(200):
            draft = tmp_path / f"docs.{name}{number}"
            draft.mkdir()
            (draft / "index.html").write_text(name)
            try:
                with build_lock.hold_lock(folder):
                    build._replace(folder, draft)
            except OSError as error:
                failed.append(error)

    threads = [threading.Thread(target=replace_often, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert not failed
    assert {path.name for path in tmp_path.iterdir()} == {"docs", "docs.lock"}
