"""A real worker followed from probe point to probe point, with its effects applied to the model."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from controlplane.core.jobs import claims, engine, kinds
from controlplane.core.jobs.claims import LeasedJob
from switches.ramps.tests.model import database_state
from switches.ramps.tests.model.house import House, to_time
from switches.ramps.tests.model.parts import Held
from switches.ramps.tests.model.ramp import Move, Ramp

WORKER = "system:ramps"
TOLD_AS = {"advance": "ramp.advanced", "compensate": "ramp.compensated", "hold": "ramp.held"}
OPEN = ("ramp.claimed", "ramp.looked", "ramp.worked")
"""Probe points outside a transaction, besides those after each commit; others may act there."""


class Died(BaseException):
    """Raised at a probe point to simulate the worker's death."""


class Broke(Exception):
    """Raised at a probe point to simulate an error in a transition."""


class Disproved(BaseException):
    """Raised if an action between two points differs from the model; no worker may handle it."""


@dataclass
class Script:
    """The probe points, counted from 1, at which the worker dies or a transition breaks.

    `meanwhile` maps points to actions of others; only points outside transactions are counted for
    it.
    """

    dies: int = 0
    breaks: int = 0
    meanwhile: Mapping[int, Callable[[], None]] = field(default_factory=dict)


@dataclass
class Worker:
    """A worker during its tick; `turns` are the jobs it has claimed."""

    house: House
    script: Script
    held: Held | None = None
    turns: list[LeasedJob] = field(default_factory=list)
    moves: dict[str, Move] = field(default_factory=dict)
    points: list[str] = field(default_factory=list)
    open_points: int = 0
    broke: bool = False
    died_at: str = ""

    def tick(self) -> None:
        """Run a whole tick as the job engine does."""
        now = self.house.world.now
        self._run(lambda: engine.run_tick("ramps.turn", to_time(now), self.probe))
        assert self.held is not None or not self._overlooked([])

    def claim(self) -> None:
        """Run only the first part of a tick: claim the leases, then stand still."""
        self.turns = claims.claim_jobs(["ramp"], to_time(self.house.world.now), most=2000)
        self._claimed()
        self.house.compare()

    def go_on(self) -> None:
        """Run the rest of the tick; assert that ramps whose lease was lost are unchanged."""
        assert self.held is not None
        kind, then = kinds.get_kinds()["ramp"], to_time(self.held.now)
        late = self._late()
        before = database_state.whole_jobs(late)

        def rest() -> None:
            kind.work(self.turns, then, self.probe)
            claims.release_leases(self.turns)

        self._run(rest)
        if not self.script.meanwhile:
            assert database_state.whole_jobs(late) == before, (
                "a worker that is late changed something"
            )

    def probe(self, point: str) -> None:
        try:
            self._pass(point)
        except Broke:
            raise
        except Exception as error:
            raise Disproved(point) from error

    def _pass(self, point: str) -> None:
        self.points.append(point)
        if point == "ramp.claimed":
            self._claimed()
        elif point == "ramp.looked":
            assert self.held is not None
            self.moves = self.house.world.look(self.held)
        if point.endswith(".committed"):
            self._settle()
        if point in OPEN or point.endswith(".committed"):
            self.open_points += 1
            if self.open_points in self.script.meanwhile:
                self.house.compare()
                self.script.meanwhile[self.open_points]()
        if len(self.points) == self.script.dies:
            raise Died(point)
        in_move = point.partition(".")[0] in TOLD_AS or point.startswith("complete.")
        if len(self.points) == self.script.breaks and in_move and not point.endswith("committed"):
            self.broke = True
            raise Broke(point)

    def _run(self, work: Callable[[], object]) -> None:
        try:
            work()
        except Disproved as disproved:
            assert disproved.__cause__ is not None
            raise disproved.__cause__ from None
        except Died as died:
            self.died_at = str(died)
            self._settle()
        else:
            self._settle()
            if self.held is not None:
                left = {id for id in self.moves if self._is_ours(id)}
                assert not left or self.broke, f"not carried out: {left} of {self.moves}"
                self.house.world.give_back(self.held)
        self.house.compare()

    def _claimed(self) -> None:
        before, now = self.house.fences, database_state.fences()
        taken = {pk for pk, fence in now.items() if before.get(pk) != fence}
        found = [ramp for ramp in self._ramps() if self.house.pks[id(ramp)] in taken]
        world = self.house.world
        assert len(found) == len(taken)
        assert not self._overlooked(found), "a ramp was not looked at"
        assert all(ramp.may_be_seen(world.now) for ramp in found), "a ramp is another worker's"
        self.held = world.claim(found)

    def _overlooked(self, found: list[Ramp]) -> list[Ramp]:
        ramps = [ramp for ramp in self._ramps() if ramp.has_to_be_seen(self.house.world.now)]
        return [ramp for ramp in ramps if not any(ramp is other for other in found)]

    def _ramps(self) -> list[Ramp]:
        live = [switch.live for switch in self.house.world.switches.values()]
        return [ramp for ramp in live if ramp is not None]

    def _is_ours(self, id: str) -> bool:
        assert self.held is not None
        return any(ramp.switch == id and ramp.is_live for ramp in self.held.list_current())

    def _late(self) -> list[int]:
        assert self.held is not None
        still = [id(ramp) for ramp in self.held.list_current()]
        ours = [id(ramp) for ramp, _ in self.held.turns]
        return [self.house.pks[id_] for id_ in ours if id_ not in still]

    def _settle(self) -> None:
        """Apply to the model what the worker has done since, according to the audit trail."""
        ours = {id: move for id, move in self.moves.items() if self._is_ours(id)}
        if not ours:
            return
        assert self.held is not None
        world, now = self.house.world, self.held.now
        audit, rows = database_state.done_since(self.house.last_audit)
        recorded = {(row.target, row.action) for row in audit if row.actor == WORKER}
        for id_, move in ours.items():
            ramp = world.switches[id_].ramps[-1]
            row = rows[self.house.pks[id(ramp)]]
            is_end = move.kind == "advance" and ramp.is_last
            action = "switch.released" if is_end else TOLD_AS[move.kind]
            if (id_, action) in recorded:
                done = move
            elif self.broke and (id_, "ramp.compensated") in recorded:
                done = Move("compensate")
            elif move.kind == "hold" and ramp.step.is_told:
                since = None if move.blind_since is None else to_time(move.blind_since)
                if (row.state, row.blind_since) != ("holding", since):
                    continue
                done = move
            elif self.broke and move.kind == "compensate" and row.state == "failed":
                del self.moves[id_]
                world.not_compensated(id_, now)
                continue
            else:
                continue
            del self.moves[id_]
            world.carry_out(id_, done, now)
