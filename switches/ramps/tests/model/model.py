"""A model of an installation with ramps, written from the contract alone.

It is plain data and uses no code of the product. `story` is the expected audit trail, `version` the
number of publications.
"""

from dataclasses import replace

from switches.ramps.tests.model.parts import Held, Parts, Switch
from switches.ramps.tests.model.ramp import (
    AUTOMATIC,
    FAILED,
    FRESH,
    LEASE,
    NEVER,
    RETRY,
    Move,
    Person,
    Plan,
    Ramp,
    Refused,
    Request,
    Said,
    decide,
    judge,
)

EARLY, LONG_ENOUGH = 25, 60
"""A plan that spends fewer seconds at up to this percentage counts as immediate."""
HOLDS_BY_DEFAULT = ("global", "segment")


class World(Parts):
    """The modeled installation, with the actions of people, workers, the clock and programs."""

    # Actions on switches.

    def engage(self, id: str, reason: str, seconds: int, policy: str | None) -> None:
        switch = self.switches[id]
        if switch.scope == "global" and policy not in (None, "hold"):
            raise Refused("invalid")
        if switch.state == "engaged":
            raise Refused("conflict")
        if switch.live is not None:
            self._end(switch.live, "aborted", self.now, FAILED)
        self._void(id, "release")
        policy = policy or ("hold" if switch.scope in HOLDS_BY_DEFAULT else "ramp")
        if self._releases_sooner(switch, self.now + seconds, policy):
            policy = "hold"
        if switch.is_released:
            switch.ramped_at = set()
        switch.is_released, switch.percent, switch.overdue = False, 0, False
        switch.reason, switch.expires, switch.on_expiry = reason, self.now + seconds, policy
        self._publish(id, "switch.engaged")

    @staticmethod
    def _releases_sooner(switch: Switch, expires: int, policy: str) -> bool:
        """Return True if the expiry would release a ramping segment without a second person."""
        if switch.is_released or switch.scope != "segment" or policy != "release":
            return False
        return switch.on_expiry != "release" or expires < switch.expires

    def extend(self, id: str, seconds: int) -> None:
        switch = self.switches[id]
        if switch.state != "engaged":
            raise Refused("conflict")
        if self.now + seconds <= switch.expires:
            raise Refused("invalid")
        switch.expires, switch.overdue = self.now + seconds, False
        self._publish(id, "switch.extended")

    def release(self, id: str, who: Person, plan: Plan | None) -> None:
        """Release a switch by a ramp, or immediately without a plan."""
        switch = self.switches[id]
        if switch.is_released or (plan and switch.live and not switch.pending):
            raise Refused("conflict")
        at_once = plan is None or not any(share.dwell or share.gates for share in plan[:-1])
        early = sum(share.dwell for share in plan or () if share.percent <= EARLY)
        if switch.scope == "global" or (early < LONG_ENOUGH and switch.scope == "segment"):
            return self._ask_to_release(switch, who, plan)
        if at_once and not who.approves:
            raise Refused("forbidden")
        if plan is None:
            return self._release(switch, self.now)
        if switch.pending is not None:
            self._void(id, "release")
        return self._begin(switch, self._new_ramp(switch, who.name, plan), self.now)

    # Actions on the last ramp of a switch.

    def advance(self, id: str, who: Person) -> None:
        switch, ramp = self._ramp(id)
        if not who.approves:
            raise Refused("forbidden")
        if ramp.state not in ("running", "holding"):
            raise Refused("conflict")
        step = ramp.step.set_right(self.now)
        gates = step.share.gates
        verdicts = [judge(gate, step, self.said.get(gate.name), self.now) for gate in gates]
        against = {"conflict"} if "fail" in (*verdicts, *step.seen) else set()
        is_early = self.now < step.ends or any(verdict != "pass" for verdict in verdicts)
        is_large = ramp.next_percent > EARLY
        takes_two = switch.scope in ("global", "segment") and is_large and is_early
        if who.name == ramp.by and ("waiting" in verdicts or takes_two):
            against.add("forbidden")
        if against:
            raise Refused(*against)
        ramp.fence_worker()
        self._advance(switch, ramp, self.now)

    def pause(self, id: str) -> None:
        _, ramp = self._ramp(id, "running", "holding")
        ramp.fence_worker()
        ramp.state, ramp.paused_at = "paused", self.now
        self._tell(id, "ramp.paused")

    def resume(self, id: str) -> None:
        _, ramp = self._ramp(id, "paused")
        ramp.fence_worker()
        assert ramp.paused_at is not None
        if ramp.step.ends > ramp.paused_at:
            ramp.step.ends += self.now - ramp.paused_at
        if ramp.blind_since is not None:
            ramp.blind_since += max(self.now - ramp.paused_at, 0)
        ramp.state, ramp.paused_at = "running", None
        self._tell(id, "ramp.resumed")

    def abort(self, id: str) -> None:
        switch, ramp = self._ramp(id, "pending_approval", "running", "holding", "paused", "failed")
        if switch.pending is not None:
            self._end(ramp, "aborted", self.now)
            self._void(id, "release")
            return self._tell(id, "ramp.aborted")
        ramp.fence_worker()
        return self._compensate(switch, ramp, "ramp.aborted", self.now)

    # Decisions of second persons.

    def decide(self, request: Request, who: Person, verdict: str) -> None:
        own = who.name == request.by
        if not who.approves and not (own and verdict == "denied"):
            raise Refused("forbidden")
        if own and verdict == "approved":
            raise Refused("forbidden")
        if request.state == verdict and request.decided_by == who.name:
            return
        if not request.is_open(self.now):
            raise Refused("conflict")
        switch = self.switches[request.switch]
        self._close(request, verdict, who.name)
        if request.kind == "release" and verdict == "approved":
            if request.wish[0] is None:
                self._release(switch, self.now)
            elif switch.pending is not None:
                self._begin(switch, switch.pending, self.now)

    def expire_requests(self) -> None:
        for request in self.requests:
            if request.state == "pending" and not request.is_open(self.now):
                self._close(request, "expired", "")

    # Expiries and verdicts of external gates.

    def report(self, gate: str, verdict: str, observed_at: int) -> None:
        if observed_at > self.now + FRESH:
            raise Refused("invalid")
        at = min(observed_at, self.now)
        known = self.said.get(gate)
        failed = known.failed if known and known.failed <= self.now + FRESH else NEVER
        if verdict == "fail" and self.now - at <= FRESH:
            failed = max(failed, at)
        if known is None or at >= known.at or known.at > self.now + FRESH:
            self.said[gate] = Said(verdict, at, failed)
        elif failed == at:
            self.said[gate] = replace(known, failed=at)

    def expire(self) -> None:
        for switch in self.switches.values():
            due = switch.state == "engaged" and switch.expires <= self.now and not switch.overdue
            if not due:
                continue
            waits = switch.on_expiry == "ramp" and switch.pending is not None
            held = switch.on_expiry == "hold" or waits
            if not held and switch.on_expiry == "release":
                self._release(switch, self.now)
            elif not held and switch.expires not in switch.ramped_at:
                switch.ramped_at.add(switch.expires)
                ramp = self._new_ramp(switch, "ramps", AUTOMATIC)
                self._begin(switch, ramp, self.now)
            else:
                switch.overdue = True
                self._tell(switch.id, "episode.overdue")

    # Workers.

    def claim(self, found: list[Ramp]) -> Held:
        """Let a worker claim the ramps that the real worker has claimed."""
        for ramp in found:
            ramp.turn, ramp.leased_until = ramp.turn + 1, self.now + LEASE
            ramp.touched, ramp.not_before = self.now, min(ramp.not_before, self.now)
        return Held(self.now, [(ramp, ramp.turn) for ramp in found])

    def look(self, held: Held) -> dict[str, Move]:
        """Return, by switch, the next transitions of the ramps whose lease the worker still has."""
        moves = {}
        for ramp in held.list_current():
            ramp.set_right(held.now)
            gates = ramp.step.share.gates
            verdicts = [
                judge(gate, ramp.step, self.said.get(gate.name), held.now) for gate in gates
            ]
            ramp.step.seen = list(verdicts)
            moves[ramp.switch] = decide(ramp, verdicts, held.now)
        return {id: move for id, move in moves.items() if move.kind != "stay"}

    def carry_out(self, id: str, move: Move, now: int) -> None:
        switch, ramp = self._ramp(id)
        if move.kind == "compensate":
            return self._compensate(switch, ramp, "ramp.compensated", now)
        if move.kind == "advance":
            return self._advance(switch, ramp, now)
        if not ramp.step.is_told:
            self._tell(id, "ramp.held")
        ramp.state, ramp.step.is_told = "holding", True
        ramp.blind_since = move.blind_since
        manual = [gate for gate in ramp.step.share.gates if gate.kind == "manual"]
        if manual and ramp.step.asked is None:
            ramp.step.asked = self._ask("ramp_gate", id, ramp.by, now + manual[0].timeout)
        return None

    def not_compensated(self, id: str, now: int) -> None:
        """Record a failed compensation: it is escalated to a person and tried again."""
        _, ramp = self._ramp(id)
        if ramp.state != "failed":
            self._tell(id, "job.compensation_failed")
        ramp.state, ramp.not_before = "failed", now + RETRY

    def give_back(self, held: Held) -> None:
        for ramp in held.list_current():
            ramp.leased_until = None
