"""The chapters of the story, played into real services, and what visitors tell of themselves."""

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from demo import load, scenario, world
from demo.faults import WELL, Fault, Faults
from demo.http_service import FaultyService, ServiceResponse, run_service
from demo.scenario import CHAPTERS, Player
from switchgear.testing import FakeClock

CLIENT = Path(scenario.__file__).parent.parent


class Stage:
    """Three services that answer as `retrieval` says; waiting moves the clock."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.faults = {name: Faults(self.clock.monotonic) for name in world.SERVICES}
        self.retrieval = "v2"
        self.label: dict[str, object] = {}
        self.switches = 0
        self.stopped_after: float | None = None
        self.waited = 0.0

    def wait(self, seconds: float) -> bool:
        self.clock.advance(seconds)
        self.waited += seconds
        if self.stopped_after is not None and self.waited >= self.stopped_after:
            self.retrieval = "v1"
        return False

    def answer(self, _: object) -> ServiceResponse:
        return ServiceResponse(200, {"retrieval": self.retrieval, **self.label})

    def show_switches(self, _: object) -> ServiceResponse:
        return ServiceResponse(200, {"engaged_or_ramping": self.switches})


@pytest.fixture
def stage() -> Stage:
    return Stage()


@pytest.fixture
def player(stage: Stage) -> Iterator[Player]:
    routes = {("POST", "/ask"): stage.answer, ("GET", "/switches"): stage.show_switches}
    with (
        run_service(FaultyService(routes, stage.faults["core"])) as core,
        run_service(FaultyService({}, stage.faults["oracle"])) as oracle,
    ):
        yield Player(
            {"core": core, "oracle": oracle}, stage.wait, "http://c", stage.clock.monotonic
        )


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_chapter_mends_what_it_broke(player: Player, stage: Stage, name: str) -> None:
    chapter = CHAPTERS[name]

    player.play(chapter)

    assert stage.waited == pytest.approx(chapter.seconds)
    assert all(faults.present == WELL for faults in stage.faults.values())


def test_a_fault_is_in_while_its_chapter_plays(player: Player, stage: Stage) -> None:
    faults_seen = []

    def wait(seconds: float) -> bool:
        faults_seen.append(stage.faults["oracle"].present.only)
        return stage.wait(seconds)

    player._wait = wait
    player.play(CHAPTERS["experiment"])

    assert set(faults_seen) == {"experiment:rag-v2"}


def test_the_story_begins_if_nobody_uses_the_demo(player: Player, stage: Stage) -> None:
    assert player.wait_until_unused()

    assert stage.waited == pytest.approx(scenario.UNUSED_SECONDS)


def test_the_story_waits_for_a_switch(
    player: Player, stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    stage.switches = 1

    def wait(seconds: float) -> bool:
        if stage.waited > 400:
            stage.switches = 0
        return stage.wait(seconds)

    player._wait = wait

    assert player.wait_until_unused()
    assert stage.waited > 400 + scenario.UNUSED_SECONDS
    assert caplog.text.count("waiting until no switch is engaged") == 1


def test_the_story_waits_for_the_fault_of_a_person(player: Player, stage: Stage) -> None:
    stage.faults["oracle"].inject(Fault(delay_ms=800, seconds=100))

    assert player.wait_until_unused()

    assert stage.waited == pytest.approx(100 + scenario.UNUSED_SECONDS, abs=5)


def test_a_story_that_waits_can_be_ended(player: Player) -> None:
    player._wait = lambda _: True

    assert not player.wait_until_unused()


def test_a_stopped_experiment_ends_its_chapter(player: Player, stage: Stage) -> None:
    stage.stopped_after = 60.0

    player.play(CHAPTERS["experiment"])

    assert stage.waited == pytest.approx(60.0 + scenario.AFTERWARDS_SECONDS)
    assert stage.faults["oracle"].present == WELL


def test_an_answer_of_before_is_no_proof_that_the_experiment_is_stopped(
    player: Player, stage: Stage
) -> None:
    stage.stopped_after = 60.0
    stage.label = {"partial": True, "source": "cache"}

    player.play(CHAPTERS["experiment"])

    assert stage.waited == pytest.approx(CHAPTERS["experiment"].seconds)


def test_an_end_in_the_middle_leaves_no_fault(player: Player, stage: Stage) -> None:
    player._wait = lambda _: True

    player.play(CHAPTERS["outage"])

    assert stage.faults["oracle"].present == WELL


def test_services_that_are_away_do_not_end_the_story_and_are_not_said_to_be_mended(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    player = Player({"core": 9, "oracle": 9}, stage.wait, "http://c", stage.clock.monotonic)

    player.play(CHAPTERS["experiment"])

    assert stage.waited == pytest.approx(CHAPTERS["experiment"].seconds)
    assert "can't reach" in caplog.text
    assert "Watch" not in caplog.text
    assert "recovered" not in caplog.text


def test_a_service_that_comes_up_late_is_broken_still(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    faults_seen: list[bool] = []
    with ExitStack() as stack:
        port = free_port()

        def wait(seconds: float) -> bool:
            if stage.waited == 0:
                stack.enter_context(run_service(FaultyService({}, stage.faults["oracle"]), port))
            else:
                faults_seen.append(stage.faults["oracle"].present.down)
            return stage.wait(seconds)

        player = Player({"oracle": port}, wait, "http://c", stage.clock.monotonic)
        player.play(CHAPTERS["outage"])

    assert len(faults_seen) > 1
    assert all(faults_seen)
    assert caplog.text.count("has recovered") == 1


def test_a_fault_that_is_refused_is_told_of(
    player: Player, stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    chapter = replace(CHAPTERS["outage"], fault={"wings": True}, seconds=4.0)

    player.play(chapter)

    assert "oracle rejected the fault: wings is unknown" in caplog.text
    assert stage.waited == pytest.approx(4.0)


def test_a_chapter_chosen_waits_for_services_that_start_beside_it() -> None:
    faults = {name: Faults() for name in world.SERVICES}
    ports = {name: free_port() for name in world.SERVICES}
    environment = {
        **os.environ,
        **{f"DEMO_{name.upper()}_PORT": str(port) for name, port in ports.items()},
        "DEMO_SCENARIO": "outage",
        "PYTHONPATH": str(CLIENT),
        "PYTHONUNBUFFERED": "1",
    }
    story = subprocess.Popen(
        [sys.executable, "-m", "demo.scenario"], env=environment, stdout=subprocess.PIPE, text=True
    )
    try:
        with ExitStack() as stack:
            for name, port in ports.items():
                time.sleep(0.5)  # By now the story has come to its first call, or comes later.
                stack.enter_context(run_service(FaultyService({}, faults[name]), port))
            assert story.stdout is not None
            first = story.stdout.readline()
            assert faults["oracle"].present.down
            story.terminate()
            rest, _ = story.communicate(timeout=30)
    finally:
        story.kill()

    assert first.startswith("oracle is down")
    assert rest == "oracle has recovered\n"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((world.HOST, 0))
        port: int = probe.getsockname()[1]
    return port


def test_the_environment_chooses_the_chapters() -> None:
    assert scenario.parse_scenario("") == scenario.parse_scenario("auto") == tuple(CHAPTERS)
    assert scenario.parse_scenario("off") == ()
    assert scenario.parse_scenario("letters") == ("letters",)
    with pytest.raises(ValueError, match="DEMO_SCENARIO"):
        scenario.parse_scenario("everything")


def test_no_chapter_comes_back_within_half_an_hour() -> None:
    """Three trips within an hour would lock the experiment against machines."""
    assert len(CHAPTERS) * scenario.EVERY_SECONDS * 2 > 3600


def test_visitors_tell_how_they_fared_since_they_last_told() -> None:
    counts = load.VisitCounts()
    for outcome in ("answered", "answered", "failed"):
        counts.note(outcome, 0.1)
    counts.note("refused", 0.1, "feature:nl2sql")

    first, second = counts.line(), counts.line()

    assert first == "2 answered, 1 refused (1 by feature:nl2sql), 1 failed; p95 100 ms"
    assert re.match("0 answered, 0 refused, 0 failed", second)


@pytest.mark.parametrize("text", ["0", "-1", "101", "nan", "many"])
def test_a_rate_that_can_not_be_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="DEMO_RATE"):
        load.parse_rate(text)


def test_questions_are_of_all_segments_and_both_intents() -> None:
    questions = [load.make_question() for _ in range(2000)]

    assert {question["segment"] for question in questions} == set(world.SEGMENTS)
    assert {question["intent"] for question in questions} == {world.NL2SQL, world.ONTOLOGY}
    assert {world.takes_part(question["user"]) for question in questions} == {True, False}
