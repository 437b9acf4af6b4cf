"""Base of the modeled installation: its data, and the changes that its actions share.

It uses no code of the product.
"""

from dataclasses import dataclass, field

from switches.ramps.tests.model.ramp import (
    FAILED,
    PASSED,
    Person,
    Plan,
    Ramp,
    Refused,
    Request,
    Said,
    Wish,
)


@dataclass
class Switch:
    """A modeled switch; `ramps` are all its ramps, oldest first."""

    id: str
    percent: float = 100
    is_released: bool = True
    expires: int = 0
    on_expiry: str = ""
    reason: str = ""
    overdue: bool = False
    ramped_at: set[int] = field(default_factory=set)
    ramps: list[Ramp] = field(default_factory=list)

    @property
    def scope(self) -> str:
        return self.id.partition(":")[0]

    @property
    def state(self) -> str:
        if self.is_released:
            return "released"
        return "ramping" if self.percent else "engaged"

    @property
    def live(self) -> Ramp | None:
        return self.ramps[-1] if self.ramps and self.ramps[-1].is_live else None

    @property
    def pending(self) -> Ramp | None:
        return self.live if self.live and self.live.state == "pending_approval" else None


@dataclass
class Held:
    """The ramps that a modeled worker claimed, each with its turn, and the time of the claim."""

    now: int
    turns: list[tuple[Ramp, int]]

    def list_current(self) -> list[Ramp]:
        return [ramp for ramp, turn in self.turns if ramp.turn == turn]


@dataclass
class Parts:
    """The data of the modeled installation, with the changes from which `World` builds actions."""

    switches: dict[str, Switch]
    now: int = 0
    version: int = 0
    said: dict[str, Said] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    story: list[tuple[str, str]] = field(default_factory=list)

    def _ramp(self, id: str, *states: str) -> tuple[Switch, Ramp]:
        switch = self.switches[id]
        ramp = switch.ramps[-1]
        if states and ramp.state not in states:
            raise Refused("conflict")
        return switch, ramp

    def _new_ramp(self, switch: Switch, by: str, plan: Plan) -> Ramp:
        ramp = Ramp(switch.id, by, plan)
        switch.ramps.append(ramp)
        return ramp

    def _begin(self, switch: Switch, ramp: Ramp, now: int) -> None:
        ramp.fence_worker()
        ramp.state, ramp.touched, ramp.not_before = "running", now, now
        ramp.enter(0, now)
        switch.percent, switch.overdue = ramp.step.share.percent, False
        self._publish(switch.id, "ramp.started")

    def _advance(self, switch: Switch, ramp: Ramp, now: int) -> None:
        if ramp.is_last:
            ramp.effects.append((ramp.index, "release"))
            self._end(ramp, "completed", now, PASSED)
            return self._release(switch, now)
        self._leave(ramp, PASSED, now)
        ramp.state = "running"
        ramp.enter(ramp.index + 1, now)
        switch.percent = ramp.step.share.percent
        return self._publish(switch.id, "ramp.advanced")

    def _compensate(self, switch: Switch, ramp: Ramp, action: str, now: int) -> None:
        ramp.effects.append((ramp.index, "compensate"))
        self._end(ramp, "aborted", now, FAILED)
        self._void(switch.id, "release")
        switch.percent = 0
        if switch.expires <= now:
            switch.on_expiry, switch.overdue = "hold", True
        self._publish(switch.id, action)

    def _release(self, switch: Switch, now: int) -> None:
        if switch.live is not None:
            self._end(switch.live, "aborted", now, FAILED)
        switch.is_released, switch.percent, switch.overdue = True, 100, False
        self._void(switch.id, "release")
        self._publish(switch.id, "switch.released")

    def _end(self, ramp: Ramp, state: str, now: int, step: str = "") -> None:
        """End a ramp in `state`; its current step, if it has begun, ends in the state `step`."""
        if ramp.state != "pending_approval":
            self._leave(ramp, step, now)
        ramp.fence_worker()
        ramp.state, ramp.blind_since = state, None

    def _leave(self, ramp: Ramp, state: str, now: int) -> None:
        """End the current step, and void its approval request or, past its deadline, expire it."""
        ramp.step.state = state
        for request in self._pending(ramp.switch, "ramp_gate"):
            self._close(request, "void" if request.is_open(now) else "expired", "")

    def _ask_to_release(self, switch: Switch, who: Person, plan: Plan | None) -> None:
        wish = (plan, switch.state)
        waiting = [
            request for request in self._pending(switch.id, "release") if request.is_open(self.now)
        ]
        if any(request.wish == wish for request in waiting):
            return
        if any(request.by != who.name for request in waiting):
            raise Refused("conflict")
        for request in self._pending(switch.id, "release"):
            self._close(request, "void" if request.is_open(self.now) else "expired", "")
        self._ask("release", switch.id, who.name, None, wish)
        if plan is not None:
            ramp = self._new_ramp(switch, who.name, plan)
            ramp.state = "pending_approval"
            self._tell(switch.id, "ramp.requested")

    def _ask(
        self, kind: str, id: str, by: str, ends: int | None, wish: Wish = (None, "")
    ) -> Request:
        """Open an approval request that ends at `ends`.

        None means that the contract doesn't say when; the comparison then takes over the real end.
        """
        request = Request(kind, id, by, ends, wish)
        self.requests.append(request)
        self._tell(id, "approval.requested")
        return request

    def _pending(self, id: str, kind: str) -> list[Request]:
        about = [
            request for request in self.requests if (request.switch, request.kind) == (id, kind)
        ]
        return [request for request in about if request.state == "pending"]

    def _void(self, id: str, kind: str) -> None:
        for request in self._pending(id, kind):
            self._close(request, "void", "")

    def _close(self, request: Request, state: str, by: str) -> None:
        request.state, request.decided_by = state, by
        self._tell(request.switch, f"approval.{state}")
        pending = self.switches[request.switch].pending
        if request.kind == "release" and state != "approved" and pending is not None:
            self._end(pending, "aborted", self.now)
            self._tell(request.switch, "ramp.aborted")

    def _publish(self, id: str, action: str) -> None:
        self.version += 1
        self._tell(id, action)

    def _tell(self, id: str, action: str) -> None:
        self.story.append((id, action))
