"""The `demo` children: no database credentials, and a start after the application is ready."""

import os
import re
import signal
from collections.abc import Mapping
from pathlib import Path

import pytest
from django.urls import resolve

from controlplane import environment
from controlplane.supervisor import application, demo, layout
from controlplane.supervisor.application import RunPlan
from controlplane.supervisor.tests.harness import (
    OUTSIDE_SERVICES,
    assert_nothing_left,
    start,
    wait_until,
)
from demo.scenario import CHAPTERS

ADDRESSES = {
    "DATABASE_URL": "postgresql://somebody:secret@127.0.0.1:1/none",
    "DATABASE_OWNER_URL": "postgresql://owner:secret@127.0.0.1:1/none",
    "REDIS_URL": "redis://127.0.0.1:1/0",
}


def built(folder: Path, monkeypatch: pytest.MonkeyPatch, **given: str) -> RunPlan:
    variables: Mapping[str, str] = {"PORT": "8123", "SECRET_KEY": "x" * 60, **given}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return demo.build_demo_plan(
        environment.read_environment(), layout.create_layout(folder / "data"), ADDRESSES
    )


SECRETS = (
    *("SWITCHGEAR_ADMIN_PASSWORD", "SWITCHGEAR_TOKEN", "SWITCHGEAR_FORCE_ENGAGED"),
    *(
        "SLACK_BOT_TOKEN",
        "SLACK_CHANNEL",
        "SLACK_SIGNING_SECRET",
        "EMAIL_URL",
        "TEST_REDIS_URL",
        "AWS_SECRET",
    ),
)
ALL = {
    *("PATH", "LC_ALL", "TZ", "PYTHONPATH", "PYTHONUNBUFFERED", "SWITCHGEAR_SUPERVISOR_PID"),
    *("DEMO_RATE", "DEMO_CORE_PORT", "DEMO_ORACLE_PORT", "DEMO_SYNAPSE_PORT", "DEMO_TOKEN_FILE"),
    *("SWITCHGEAR_URL", "SWITCHGEAR_STATE_DIR"),
}
"""Default variables of every child."""
OWN = {
    "core": {"SWITCHGEAR_INSTANCE", "REDIS_URL"},
    "oracle": {"SWITCHGEAR_INSTANCE"},
    "synapse": {"SWITCHGEAR_INSTANCE", "REDIS_URL"},
    "load": set(),
    "scenario": set(),
}


def test_the_services_use_the_given_data_planes_in_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def urls(**given: str) -> dict[str, str]:
        later = built(tmp_path, monkeypatch, **given).later
        return {spec.name: spec.environment["SWITCHGEAR_URL"] for spec in later}

    console = "http://127.0.0.1:8123"
    assert set(urls().values()) == {console}
    planes = ["http://127.0.0.1:8101", "http://127.0.0.1:8102"]
    assert urls(DEMO_PLANES="  ".join(planes)) == {
        "core": planes[0],
        "oracle": planes[1],
        "synapse": planes[0],
        "load": console,
        "scenario": console,
    }


def test_the_services_get_what_they_need_of_the_environment_and_no_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in list(os.environ):
        if name != "PATH":
            monkeypatch.delenv(name)
    for name in SECRETS:
        monkeypatch.setenv(name, "a secret long enough")
    for name in ("LC_ALL", "TZ"):
        monkeypatch.setenv(name, "C")
    app = built(tmp_path, monkeypatch, DEMO_RATE="5", EMAIL_URL="smtp://u:secret@localhost")

    assert {child.name: set(child.environment) for child in app.later} == {
        name: ALL | own for name, own in OWN.items()
    }
    for child in app.later:
        assert "secret" not in " ".join(child.environment.values())
        assert child.environment["DEMO_TOKEN_FILE"] == str(tmp_path / "data/demo/token")
        assert child.environment["SWITCHGEAR_URL"] == "http://127.0.0.1:8123"


def test_a_port_of_one_process_is_not_handed_to_all_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = built(tmp_path, monkeypatch, HEALTH_PORT="8477", SLACK_CHANNEL="C1")

    assert all(child.environment["SLACK_CHANNEL"] == "C1" for child in app.processes)
    assert not any("HEALTH_PORT" in child.environment for child in app.processes)


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

    lines = [line for line in app.greeting.splitlines() if line]
    assert len(lines) == 9
    assert f"http://127.0.0.1:{app.later[0].environment['DEMO_CORE_PORT']}/" in app.greeting


def test_a_demo_without_its_story_promises_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    promise = "begins if you only watch"
    assert promise in built(tmp_path, monkeypatch).greeting
    assert promise not in built(tmp_path, monkeypatch, DEMO_SCENARIO="off").greeting


def test_the_welcome_tells_the_chapter_and_the_rate_that_were_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    greeting = built(tmp_path, monkeypatch, DEMO_SCENARIO="letters", DEMO_RATE="7").greeting

    assert "answer 7 questions per second" in greeting
    assert "letters repeats from now on" in greeting
    assert "begins if you only watch" not in greeting


def test_the_console_logs_to_a_file_and_the_demo_to_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = built(tmp_path, monkeypatch)

    file = tmp_path / "data" / "log" / "console.log"
    console = [*app.steps[:-1], *app.processes, app.stand_in, app.documentation, app.probe]
    assert {child.log for child in console if child is not None} == {file}
    assert {child.log for child in (app.steps[-1], *app.later)} == {None}


def test_a_run_without_the_demo_says_and_starts_nothing_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_KEY", "x" * 60)
    place = layout.create_layout(tmp_path / "data")

    app = application.build_plan(environment.read_environment(), place, ADDRESSES)

    assert (app.later, app.greeting) == ((), "")


@pytest.mark.slow
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
        run.wait_for("restarting it")
        wait_until(lambda: run.output.count("lives as") > 1, 20, run)
        code, seconds = run.end()

        assert code == 0
        assert seconds < 10
        assert_nothing_left(run)


def test_every_page_that_visitors_are_sent_to_exists(tmp_path, monkeypatch) -> None:
    texts = built(tmp_path, monkeypatch).greeting + " ".join(
        f"http://127.0.0.1:8123{path}"
        for chapter in CHAPTERS.values()
        for path in re.findall(r"/\S+/", chapter.look_at)
    )

    paths = re.findall(r"http://127\.0\.0\.1:8123(/\S*)", texts)

    assert len(paths) >= 5
    for path in paths:
        resolve(path)
