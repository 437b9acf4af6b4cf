"""Preparation of the demo: wrong settings stop it, the token is kept privately."""

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from demo import prepare

CLIENT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(("name", "value"), [("DEMO_RATE", "0"), ("DEMO_SCENARIO", "war")])
def test_a_wrong_setting_stops_the_start_with_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(CLIENT))
    monkeypatch.setenv(name, value)

    done = subprocess.run(
        [sys.executable, "-m", "demo.prepare", str(tmp_path / "token")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 1
    assert done.stderr.startswith(f"{name}: must be")
    assert len(done.stderr.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_a_token_is_kept_for_this_user_alone(tmp_path: Path) -> None:
    file = tmp_path / "demo" / "token"

    prepare.write_token(file, "sg_abc_first")
    prepare.write_token(file, "sg_abc_second")

    assert file.read_text() == "sg_abc_second\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert [path.name for path in file.parent.iterdir()] == ["token"]


def test_switches_of_an_earlier_run_are_named() -> None:
    left = [
        {"id": "feature:nl2sql", "state": "engaged"},
        {"id": "experiment:rag-v2", "state": "ramping"},
    ]

    assert prepare.describe_earlier(left).splitlines() == [
        "From an earlier run, still engaged: feature:nl2sql (engaged), experiment:rag-v2 (ramping)."
        " To release, once the demo is ready:",
        ".venv/bin/python manage.py killswitch release --feature nl2sql --mode immediate"
        " --reason 'The demo is over'",
        ".venv/bin/python manage.py killswitch release --experiment rag-v2 --mode immediate"
        " --reason 'The demo is over'",
    ]
