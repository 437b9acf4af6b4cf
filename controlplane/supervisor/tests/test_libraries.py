"""Installation of the pages' libraries, with a stand-in for npm."""

import os
import shutil
import stat
from pathlib import Path

import pytest

from controlplane.supervisor import libraries

SAYS_WHY = "echo 'npm error network is down' >&2; exit 1"
INSTALLS = "echo $@ >> calls; mkdir -p node_modules/uplot"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    static = tmp_path / "static"
    static.mkdir()
    (static / "package-lock.json").write_text("{}")
    return static


@pytest.fixture
def npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Put a scripted npm on PATH, and no other."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sh", "sleep", "mkdir", "echo"):
        found = shutil.which(name)
        assert found
        (programs / name).symlink_to(found)
    monkeypatch.setenv("PATH", str(programs))

    def does(script: str) -> None:
        command = programs / "npm"
        command.write_text(f"#!/bin/sh\n{script}\n")
        command.chmod(command.stat().st_mode | stat.S_IXUSR)

    return does


@pytest.mark.services
def test_what_is_locked_is_installed_once(folder, npm, tmp_path, capsys):
    npm(INSTALLS)

    for _ in range(2):
        assert libraries.main(folder, tmp_path / "none.txt") == 0

    (call,) = (folder / "calls").read_text().splitlines()
    assert call.startswith("ci --ignore-scripts")
    assert (folder / "node_modules" / "uplot").is_dir()
    assert capsys.readouterr().out == ""


@pytest.mark.services
def test_lock_that_changed_is_installed_anew(folder, npm, tmp_path):
    npm(INSTALLS)
    libraries.main(folder, tmp_path / "none.txt")
    later = (folder / "node_modules" / ".stamp").stat().st_mtime + 5

    os.utime(folder / "package-lock.json", (later, later))

    libraries.main(folder, tmp_path / "none.txt")

    assert len((folder / "calls").read_text().splitlines()) == 2


@pytest.mark.services
def test_installation_does_without_what_only_tests_need(folder, npm, tmp_path):
    npm(INSTALLS)

    libraries.main(folder, tmp_path / "none.txt")
    libraries.main(folder, tmp_path / "none.txt", for_tests=True)
    libraries.main(folder, tmp_path / "none.txt")

    lean, whole = (folder / "calls").read_text().splitlines()
    assert "--omit=dev" in lean
    assert "--omit" not in whole


@pytest.mark.services
def test_failure_is_one_line_and_stops_nothing(folder, npm, tmp_path, capsys):
    npm(SAYS_WHY)

    assert libraries.main(folder, tmp_path / "none.txt") == 0

    output = capsys.readouterr().out
    assert (
        output == "Plots are not available; tables are shown instead: npm error network is down\n"
    )
    assert not (folder / "node_modules").exists()


@pytest.mark.services
def test_half_an_installation_is_taken_away(folder, npm, tmp_path):
    npm(f"{INSTALLS}; {SAYS_WHY}")

    libraries.main(folder, tmp_path / "none.txt")

    assert not (folder / "node_modules").exists()


@pytest.mark.services
def test_npm_that_hangs_is_given_up(folder, npm, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(libraries, "NPM_SECONDS", 0.3)
    npm("exec sleep 30")

    assert libraries.main(folder, tmp_path / "none.txt") == 0

    assert "npm took longer than" in capsys.readouterr().out


@pytest.mark.services
def test_without_npm_that_of_a_package_is_asked_for(folder, npm, tmp_path, capsys):
    assert libraries.main(folder, tmp_path / "none.txt") == 0

    output = capsys.readouterr().out
    assert output.count("\n") == 1
    assert "none.txt" in output
