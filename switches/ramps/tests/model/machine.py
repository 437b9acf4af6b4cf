"""Hypothesis state machine that draws actions of people, workers and gates, and clock changes."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from django.db import connection, transaction
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from switches.ramps.tests.model.house import AMIR, OLGA, PEOPLE, SWITCHES, House
from switches.ramps.tests.model.house import GATES as SEEN
from switches.ramps.tests.model.ramp import Gate, Plan, Share
from switches.ramps.tests.model.workers import Script, Worker

Happening = tuple[Any, ...]
"""The name of a method of :class:`House` (or `tick`), and its arguments."""

EXTERNAL = [Gate("external", name) for name in SEEN]
MANUAL = st.builds(lambda timeout: Gate("manual", timeout=timeout), st.sampled_from([5, 60, 7200]))
GATES = st.one_of(
    st.just(()),
    st.just(()),
    st.tuples(st.sampled_from(EXTERNAL)),
    st.tuples(MANUAL),
    st.tuples(st.sampled_from(EXTERNAL), MANUAL),
    st.just(tuple(EXTERNAL)),
)
PERCENTS = st.lists(st.sampled_from([1, 5, 12.5, 50]), max_size=3, unique=True).map(sorted)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    return tuple(
        Share(
            percent,
            dwell=draw(st.sampled_from([0, 1, 10, 60])),
            max_hold=draw(st.sampled_from([3600, 60, 5, 0])),
            gates=draw(GATES),
        )
        for percent in [*draw(PERCENTS), 100]
    )


SWITCH, WHO = st.sampled_from(SWITCHES), st.sampled_from(PEOPLE)
SECONDS = st.sampled_from([1, 5, 60, 3600, 86400])
FORWARD = st.sampled_from([1, 5, 10, 14, 15, 16, 30, 61, 600, 3601, 7201])
BACK = st.sampled_from([1, 5, 14, 16, 60, 3600, 7200])
AGE = st.sampled_from([0, 0, 0, 1, 59, 60, 61, -30, -61])
POLICY = st.sampled_from([None, "hold", "ramp", "release"])
VERB = st.sampled_from(["advance", "pause", "resume", "abort"])

ACTS: dict[str, tuple[st.SearchStrategy[Any], ...]] = {
    "engage": (SWITCH, WHO, SECONDS, POLICY),
    "extend": (SWITCH, WHO, SECONDS),
    "release": (SWITCH, WHO, st.one_of(plans(), plans(), plans(), st.none())),
    "intervene": (VERB, SWITCH, WHO),
    "decide": (st.integers(0, 3), WHO, st.sampled_from(["approved", "approved", "denied"])),
    "report": (
        st.sampled_from([gate.name for gate in EXTERNAL]),
        st.sampled_from(["ok", "ok", "fail"]),
        AGE,
    ),
    "expire": (),
    "expire_requests": (),
    "all_is_well": (),
}
TIMES: dict[str, tuple[st.SearchStrategy[Any], ...]] = {
    "move_clock": (st.one_of(FORWARD, FORWARD, BACK.map(lambda seconds: -seconds)),),
    "wait_for_dwell": (),
}


def one_of(kinds: dict[str, tuple[st.SearchStrategy[Any], ...]]) -> st.SearchStrategy[Happening]:
    return st.one_of(*(st.tuples(st.just(name), *takes) for name, takes in kinds.items()))


ACT, TIME = one_of(ACTS), one_of(TIMES)
RAMPING = st.sampled_from(SWITCHES[:2])
MEANWHILE = st.one_of(
    st.lists(st.one_of(ACT, ACT, TIME, st.just(("tick",))), min_size=1, max_size=3),
    st.just([("move_clock", 16), ("tick",)]),
    st.tuples(st.tuples(st.just("intervene"), VERB, RAMPING, st.just(AMIR))),
    st.tuples(st.tuples(st.just("engage"), RAMPING, WHO, SECONDS, POLICY)),
    st.tuples(st.tuples(st.just("release"), RAMPING, st.just(AMIR), st.none())),
)
"""Actions between two probe points of a worker, most of which make it lose its lease."""
HOW = st.sampled_from(["well", "well", "as it is", *SEEN])
POINT, OPEN_POINT = st.integers(1, 14), st.integers(1, 4)


class Ramps(RuleBasedStateMachine):
    """Draws sequences of actions; each has an empty database, as nothing is committed."""

    def __init__(self) -> None:
        super().__init__()
        self.open = transaction.atomic()
        self.open.__enter__()
        self.is_sound = False
        self.standing: list[Worker] = []
        self.last: Happening = ("wait_for_dwell",)

    def teardown(self) -> None:
        try:
            if self.is_sound:
                self.house.verify()
                connection.check_constraints()
        finally:
            transaction.set_rollback(True)
            self.open.__exit__(None, None, None)

    @initialize(
        switches=st.integers(1, 3),
        plan=st.tuples(plans(), plans()),
        seconds=SECONDS,
        policy=POLICY,
    )
    def set_off(
        self, switches: int, plan: tuple[Plan, ...], seconds: int, policy: str | None
    ) -> None:
        """Engage some switches and start ramps, as most drawn actions concern ramping switches."""
        self.house = House()
        for switch, path in zip(SWITCHES[:switches], (*plan, None), strict=False):
            is_global = switch == SWITCHES[2]
            self.happen(("engage", switch, OLGA, seconds, None if is_global else policy))
            if path is not None:
                self.happen(("release", switch, AMIR, path))

    @rule(act=ACT)
    def somebody_acts(self, act: Happening) -> None:
        self.happen(act)

    @rule(time=TIME)
    def time_passes(self, time: Happening) -> None:
        self.happen(time)

    @rule()
    def the_last_comes_twice(self) -> None:
        self.happen(self.last)

    @rule(switch=SWITCH, plan=plans())
    def it_is_let_go_again(self, switch: str, plan: Plan) -> None:
        if self.house.world.switches[switch].is_released:
            self.happen(("engage", switch, OLGA, 86400, None))
        self.happen(("release", switch, AMIR, plan))

    @rule()
    def a_worker_has_a_turn(self) -> None:
        self.happen(("tick",))

    @rule()
    def all_goes_well(self) -> None:
        self.happen(("all_is_well",))
        self.happen(("tick",))

    @rule(point=POINT, how=HOW)
    def a_worker_dies(self, point: int, how: str) -> None:
        self.prepare(how)
        self.work(Script(dies=point))

    @rule(point=POINT, how=HOW)
    def a_move_breaks(self, point: int, how: str) -> None:
        self.prepare(how)
        self.work(Script(breaks=point))

    @rule(point=OPEN_POINT, how=HOW, meanwhile=MEANWHILE)
    def others_come_in_between(self, point: int, how: str, meanwhile: Sequence[Happening]) -> None:
        def come() -> None:
            for happening in meanwhile:
                self.happen(happening)

        self.prepare(how)
        self.work(Script(meanwhile={point: come}))

    def prepare(self, how: str) -> None:
        """Let all gates pass (`well`), or the gate `how` fail, so that a worker has work to do."""
        if how == "well":
            self.happen(("all_is_well",))
        elif how != "as it is":
            self.happen(("report", how, "fail", 0))

    @rule(how=HOW)
    def a_worker_claims_and_stands_still(self, how: str) -> None:
        self.prepare(how)
        worker = Worker(self.house, Script())
        self.run(worker.claim)
        self.standing.append(worker)

    @precondition(lambda self: self.standing)
    @rule(which=st.integers(0, 2), dies=st.one_of(st.just(0), POINT))
    def it_goes_on(self, which: int, dies: int) -> None:
        worker = self.standing.pop(which % len(self.standing))
        worker.script = Script(dies=dies)
        self.run(worker.go_on)
        note_points(worker)

    def happen(self, happening: Happening) -> None:
        self.last = happening
        name, *takes = happening
        if name == "tick":
            self.work(Script())
        else:
            self.run(lambda: getattr(self.house, name)(*takes))

    def work(self, script: Script) -> None:
        worker = Worker(self.house, script)
        self.run(worker.tick)
        note_points(worker)

    def run(self, what: Callable[[], None]) -> None:
        self.is_sound = False
        what()
        self.is_sound = True
        TALLY["steps"] += 1


TALLY: Counter[str] = Counter()
"""Counts of passed probe points, of deaths by point, of broken transitions and of steps."""


def note_points(worker: Worker) -> None:
    TALLY.update(worker.points)
    if worker.died_at:
        TALLY[f"died at {worker.died_at}"] += 1
    if worker.broke:
        TALLY["broke"] += 1
