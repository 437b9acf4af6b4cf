"""The chapters of the story, played into real services, and what visitors tell of themselves."""

import re
from collections.abc import Iterator

import pytest

from demo import load, scenario, world
from demo.faults import WELL, Faults
from demo.scenario import CHAPTERS, Player
from demo.serving import Answer, Service, running
from switchgear.testing import FakeClock


class Stage:
    """Three services that answer as `retrieval` says; waiting moves the clock."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.faults = {name: Faults(self.clock.monotonic) for name in world.SERVICES}
        self.retrieval = "v2"
        self.stopped_after: float | None = None
        self.waited = 0.0

    def wait(self, seconds: float) -> bool:
        self.clock.advance(seconds)
        self.waited += seconds
        if self.stopped_after is not None and self.waited >= self.stopped_after:
            self.retrieval = "v1"
        return False

    def answer(self, _: object) -> Answer:
        return Answer(200, {"retrieval": self.retrieval})


@pytest.fixture
def stage() -> Stage:
    return Stage()


@pytest.fixture
def player(stage: Stage) -> Iterator[Player]:
    routes = {("POST", "/ask"): stage.answer}
    with (
        running(Service(routes, stage.faults["core"])) as core,
        running(Service({}, stage.faults["oracle"])) as oracle,
    ):
        yield Player(
            {"core": core, "oracle": oracle}, stage.wait, "http://c", stage.clock.monotonic
        )


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_chapter_mends_what_it_broke(player: Player, stage: Stage, name: str) -> None:
    chapter = CHAPTERS[name]

    player.play(chapter)

    assert stage.waited == pytest.approx(chapter.seconds)
    assert all(one.present == WELL for one in stage.faults.values())


def test_a_fault_is_in_while_its_chapter_plays(player: Player, stage: Stage) -> None:
    seen = []

    def wait(seconds: float) -> bool:
        seen.append(stage.faults["oracle"].present.only)
        return stage.wait(seconds)

    player._wait = wait
    player.play(CHAPTERS["experiment"])

    assert set(seen) == {"experiment:rag-v2"}


def test_a_stopped_experiment_ends_its_chapter(player: Player, stage: Stage) -> None:
    stage.stopped_after = 60.0

    player.play(CHAPTERS["experiment"])

    assert stage.waited == pytest.approx(60.0 + scenario.AFTERWARDS_SECONDS)
    assert stage.faults["oracle"].present == WELL


def test_an_end_in_the_middle_leaves_no_fault(player: Player, stage: Stage) -> None:
    player._wait = lambda _: True

    player.play(CHAPTERS["outage"])

    assert stage.faults["oracle"].present == WELL


def test_services_that_are_away_do_not_end_the_story(stage: Stage) -> None:
    player = Player({"core": 9, "oracle": 9}, stage.wait, "http://c", stage.clock.monotonic)

    player.play(CHAPTERS["experiment"])

    assert stage.waited == pytest.approx(CHAPTERS["experiment"].seconds)


def test_the_environment_chooses_the_chapters() -> None:
    assert scenario.chosen("") == scenario.chosen("auto") == tuple(CHAPTERS)
    assert scenario.chosen("off") == ()
    assert scenario.chosen("letters") == ("letters",)
    with pytest.raises(ValueError, match="DEMO_SCENARIO"):
        scenario.chosen("everything")


def test_no_chapter_comes_back_within_half_an_hour() -> None:
    """Three trips within an hour would lock the experiment against machines."""
    assert len(CHAPTERS) * scenario.EVERY_SECONDS * 2 > 3600


def test_visitors_tell_how_they_fared_since_they_last_told() -> None:
    tally = load.Tally()
    for outcome in ("answered", "answered", "failed"):
        tally.note(outcome, 0.1)
    tally.note("refused", 0.1, "feature:nl2sql")

    first, second = tally.line(), tally.line()

    assert first == "2 answered, 1 refused (1 by feature:nl2sql), 1 failed; p95 100 ms"
    assert re.match("0 answered, 0 refused, 0 failed", second)


@pytest.mark.parametrize("text", ["0", "-1", "101", "nan", "many"])
def test_a_rate_that_can_not_be_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="DEMO_RATE"):
        load.rate(text)


def test_questions_are_of_all_segments_and_both_intents() -> None:
    asked = [load.question() for _ in range(2000)]

    assert {one["segment"] for one in asked} == set(world.SEGMENTS)
    assert {one["intent"] for one in asked} == {world.NL2SQL, world.ONTOLOGY}
    assert {world.takes_part(one["user"]) for one in asked} == {True, False}
