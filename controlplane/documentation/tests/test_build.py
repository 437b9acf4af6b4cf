"""Builds of the site that are stopped, or run at the same time, leave only the site."""

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from controlplane.documentation import build, build_lock


@pytest.mark.slow
def test_stopped_build_leaves_no_draft(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    command = [sys.executable, "-m", "controlplane.documentation.build", str(folder)]
    with subprocess.Popen(command, cwd=build.ROOT) as process:
        ends = time.monotonic() + 100
        while not (drafts := list(tmp_path.glob("docs.*/"))) and time.monotonic() < ends:
            time.sleep(0.01)
        is_held = build_lock.is_held(folder)
        process.send_signal(signal.SIGTERM)
        process.wait(30)

    assert drafts
    assert is_held
    assert [path.name for path in tmp_path.iterdir()] == ["docs.lock"]
    assert not build_lock.is_held(folder)


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
