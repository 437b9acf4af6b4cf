"""What `demo` adds to a run: children that know no database, started once all is ready."""

import os
import re
import signal
from collections.abc import Mapping
from pathlib import Path

import pytest

from controlplane import environment
from controlplane.supervisor import application, demo, layout
from controlplane.supervisor.application import Application
from controlplane.supervisor.tests.harness import (
    OUTSIDE_SERVICES,
    assert_nothing_left,
    start,
    wait_until,
)

ADDRESSES = {
    "DATABASE_URL": "postgresql://somebody:secret@127.0.0.1:1/none",
    "DATABASE_OWNER_URL": "postgresql://owner:secret@127.0.0.1:1/none",
    "REDIS_URL": "redis://127.0.0.1:1/0",
}


def built(folder: Path, monkeypatch: pytest.MonkeyPatch, **given: str) -> Application:
    variables: Mapping[str, str] = {"PORT": "8123", "SECRET_KEY": "x" * 60, **given}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return demo.build(environment.read(), layout.prepare(folder / "data"), ADDRESSES)


def test_the_services_have_a_token_s_file_and_no_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = built(tmp_path, monkeypatch, SWITCHGEAR_ADMIN_PASSWORD="a long enough password")

    for child in app.later:
        assert not demo._NOT_THEIRS & set(child.environment)
        assert "secret" not in " ".join(child.environment.values())
        assert child.environment["DEMO_TOKEN_FILE"] == str(tmp_path / "data/demo/token")
        assert child.environment["SWITCHGEAR_URL"] == "http://127.0.0.1:8123"


def test_three_services_visitors_and_a_story_come_once_all_is_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = built(tmp_path, monkeypatch)

    assert [child.name for child in app.later] == ["core", "oracle", "synapse", "load", "scenario"]
    assert [step.name for step in app.steps] == ["migrate", "provision", "prepare"]
    assert {child.name for child in app.processes} == {"web", "worker", "beat", "watchdog"}


def test_each_service_has_a_free_port_of_its_own_that_all_know(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = built(tmp_path, monkeypatch)

    names = [f"DEMO_{name.upper()}_PORT" for name in demo.SERVICES]
    found = [tuple(child.environment[name] for name in names) for child in app.later]
    assert len(set(found)) == 1
    assert len(set(found[0])) == 3


def test_the_welcome_names_the_page_for_faults_in_few_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = built(tmp_path, monkeypatch)

    lines = [line for line in app.says.splitlines() if line]
    assert len(lines) == 8
    assert f"http://127.0.0.1:{app.later[0].environment['DEMO_CORE_PORT']}/" in app.says


def test_a_demo_without_its_story_promises_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "story begins" in built(tmp_path, monkeypatch).says
    assert "story begins" not in built(tmp_path, monkeypatch, DEMO_SCENARIO="off").says


def test_a_run_without_the_demo_says_and_starts_nothing_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_KEY", "x" * 60)
    place = layout.prepare(tmp_path / "data")

    app = application.build(environment.read(), place, ADDRESSES)

    assert (app.later, app.says) == ((), "")


def test_what_is_started_later_is_started_again_and_ended_with_the_rest(tmp_path: Path) -> None:
    lives = "import os, time; print('lives as', os.getpid(), flush=True); time.sleep(600)"
    with start(
        tmp_path / "data", stand_ins={"later-visitor": lives}, environment=OUTSIDE_SERVICES
    ) as run:
        run.wait_for("lives as")
        ready = run.output.index("Switchgear is ready")
        first = re.search(r"later-visitor \| lives as (\d+)", run.output)
        assert first is not None
        assert first.start() > ready

        os.kill(int(first[1]), signal.SIGKILL)
        run.wait_for("starting it again")
        wait_until(lambda: run.output.count("lives as") > 1, 20, run)
        code, seconds = run.end()

        assert code == 0
        assert seconds < 10
        assert_nothing_left(run)
