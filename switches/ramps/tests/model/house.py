"""The product beside the model: each action is done in both, and the states are compared."""

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from controlplane.accounts.models.people import User
from controlplane.core.actors import system_actor
from controlplane.core.approvals import services as approvals
from controlplane.core.audit import services as audit
from controlplane.core.errors import Conflict, Forbidden, InvalidInput
from controlplane.core.gates import external
from switches import services
from switches.models import Publication
from switches.ramps import actions
from switches.ramps.tests.model import database_state
from switches.ramps.tests.model.database_state import AuditRow, RampRow, Shown
from switches.ramps.tests.model.model import World
from switches.ramps.tests.model.parts import Switch
from switches.ramps.tests.model.ramp import Person, Plan, Ramp, Refused
from switches.ramps.tests.model.story import retell

BEGINNING = datetime(2026, 11, 21, tzinfo=UTC)
GATES = ("smoke", "soak")
SWITCHES = ("feature:search", "segment:finance", "global:all")
OLGA, AMIR, ANNA = Person("olga", False), Person("amir", True), Person("anna", True)
PEOPLE = (OLGA, AMIR, ANNA)
BACK = "root cause fixed in release 41, verified on staging"
REFUSALS = {Conflict: "conflict", Forbidden: "forbidden", InvalidInput: "invalid"}
STATES = {"pending": "pending_approval", "cancelled": "aborted"}
STEPS = {"running": "dwelling", "compensated": "failed"}
UNTOLD = {"ramp.requested", "gate.reported", "job.compensation_failed"}
"""Audit actions without a message of their own."""


def to_time(seconds: int) -> datetime:
    return BEGINNING + timedelta(seconds=seconds)


class House:
    """An empty installation in an open transaction, and its model: three people, three switches."""

    def __init__(self) -> None:
        self.world = World({id: Switch(id) for id in SWITCHES})
        self.actors = {}
        for person in PEOPLE:
            role = "approver" if person.approves else "operator"
            user = User.objects.create(username=person.name, role=role)
            self.actors[person.name] = user.as_actor()
        self.first_version = Publication.objects.get().version
        self.last_audit = max((row.id for row in database_state.audit(0)), default=0)
        self.first_audit = self.last_audit
        self.engaged = 0
        self.pks: dict[int, int] = {}
        self.fences: dict[int, int] = {}
        self.salts: dict[str, str] = {}

    # Actions of people.

    def engage(self, switch: str, who: Person, seconds: int, policy: str | None) -> None:
        self.engaged += 1
        reason = f"checkout errors since {self.engaged} o'clock"
        self.both(
            lambda: self.world.engage(switch, reason, seconds, policy),
            lambda: services.engage(
                **self.build_arguments(switch, who),
                reason=reason,
                expires_in=f"{seconds}s",
                on_expiry=policy,
            ),
        )

    def extend(self, switch: str, who: Person, seconds: int) -> None:
        self.both(
            lambda: self.world.extend(switch, seconds),
            lambda: services.extend(
                **self.build_arguments(switch, who),
                expires_in=f"{seconds}s",
                reason="the vendor is down yet",
            ),
        )

    def release(self, switch: str, who: Person, plan: Plan | None) -> None:
        mode: dict[str, Any] = {"mode": "immediate"}
        if plan is not None:
            mode = {"mode": "ramp", "plan": as_json(plan)}
        self.both(
            lambda: self.world.release(switch, who, plan),
            lambda: services.release(
                **self.build_arguments(switch, who), justification=BACK, **mode
            ),
        )

    def intervene(self, verb: str, switch: str, who: Person) -> None:
        """Advance, pause, resume or abort the switch's last ramp; do nothing if it has none."""
        if not (ramps := self.world.switches[switch].ramps):
            return
        ideal = getattr(self.world, verb)
        self.both(
            lambda: ideal(switch, who) if verb == "advance" else ideal(switch),
            lambda: getattr(actions, verb)(
                ramp_id=self.pks[id(ramps[-1])],
                reason="we looked at it together",
                actor=self.actors[who.name],
                now=to_time(self.world.now),
            ),
        )

    def decide(self, latest: int, who: Person, verdict: str) -> None:
        """Approve or deny an approval request; `latest` counts from the newest, which is 0."""
        if not self.world.requests:
            return
        request = self.world.requests[-1 - latest % len(self.world.requests)]
        service = approvals.approve if verdict == "approved" else approvals.deny
        self.both(
            lambda: self.world.decide(request, who, verdict),
            lambda: service(
                approval_id=self.pks[id(request)],
                comment="",
                actor=self.actors[who.name],
                now=to_time(self.world.now),
            ),
        )

    # Verdicts of external gates, and the clock.

    def report(self, gate: str, verdict: str, age: int) -> None:
        seen = self.world.now - age
        self.both(
            lambda: self.world.report(gate, verdict, seen),
            lambda: external.record_verdict(
                name=gate,
                verdict=verdict,
                evidence={},
                observed_at=to_time(seen),
                actor=system_actor("pipeline"),
                now=to_time(self.world.now),
            ),
        )

    def all_is_well(self) -> None:
        """End the first dwell, let every gate pass, and approve every open request."""
        self.wait_for_dwell()
        for gate in GATES:
            self.report(gate, "ok", 0)
        for latest, request in enumerate(reversed(self.world.requests)):
            if request.is_open(self.world.now):
                self.decide(latest, ANNA if request.by != ANNA.name else AMIR, "approved")

    def expire(self) -> None:
        self.both(self.world.expire, lambda: services.expire_due(to_time(self.world.now)))

    def expire_requests(self) -> None:
        self.both(
            self.world.expire_requests,
            lambda: approvals.expire_due_requests(to_time(self.world.now)),
        )

    def move_clock(self, seconds: int) -> None:
        self.world.now += seconds

    def wait_for_dwell(self) -> None:
        """Move the clock to the end of the first dwell that is not over yet."""
        live = [switch.live for switch in self.world.switches.values()]
        ends = [ramp.step.ends for ramp in live if ramp and ramp.step.state == "dwelling"]
        if to_come := [end for end in ends if end > self.world.now]:
            self.world.now = min(to_come)

    # Comparison.

    def build_arguments(self, switch: str, who: Person) -> dict[str, Any]:
        scope, _, key = switch.partition(":")
        now = to_time(self.world.now)
        return {"scope": scope, "key": key, "actor": self.actors[who.name], "now": now}

    def both(self, ideal: Callable[[], object], real: Callable[[], object]) -> None:
        """Do an action in the model and in the product, and compare the results.

        Assert that either both refuse it, for a reason that the model allows, or neither does.
        """
        allowed: frozenset[str] = frozenset()
        try:
            ideal()
        except Refused as refused:
            allowed = refused.kinds
        refusal = ""
        try:
            real()
        except tuple(REFUSALS) as error:
            refusal = REFUSALS[type(error)]
            assert allowed, f"refused, and should not have been: {error}"
        assert refusal in (allowed or {""}), f"should have been refused: {sorted(allowed)}"
        self.compare()

    def compare(self) -> None:
        """Assert that the product's state and messages are those of the model."""
        state = database_state.everything(self.last_audit)
        self._compare_told(state)
        self._compare_requests(state)
        self._compare_ramps(state)
        self._compare_switches(state)

    def _compare_switches(self, state: Shown) -> None:
        assert state.version - self.first_version == self.world.version
        stopped = {
            id: switch for id, switch in self.world.switches.items() if not switch.is_released
        }
        assert set(state.switches) == set(state.overdue) == set(stopped)
        for id, switch in stopped.items():
            entry, overdue = state.switches[id], state.overdue[id]
            found = (entry["state"], entry["allow_percent"], entry["reason"], overdue)
            assert found == (switch.state, switch.percent, switch.reason, switch.overdue)
            assert entry["expires_at"] == f"{to_time(switch.expires):%Y-%m-%dT%H:%M:%S.%fZ}"
            assert entry["on_expiry"] == switch.on_expiry
            assert entry["salt"] == self.salts.setdefault(id, entry["salt"])
        self.salts = {id: salt for id, salt in self.salts.items() if id in stopped}

    def _compare_ramps(self, state: Shown) -> None:
        for key, switch in self.world.switches.items():
            assert len(state.ramps[key]) == len(switch.ramps), f"{key} has another ramp"
            for row, ramp in zip(state.ramps[key], switch.ramps, strict=True):
                self.pks[id(ramp)] = row.pk
                self.fences[row.pk] = row.fence
                _compare_ramp(row, ramp)
                assert state.effects.get(row.pk, []) == ramp.effects
            live = [row for row in state.ramps[key] if row.live]
            assert len(live) <= 1
            flows = float(state.switches[key]["allow_percent"]) if key in state.switches else 0
            planned = [switch.ramps[-1].plan[row.index].percent for row in live if has_begun(row)]
            assert flows == sum(planned), f"{flows} % of {key} are let through"

    def _compare_requests(self, state: Shown) -> None:
        assert len(state.approvals) == len(self.world.requests)
        by_target: dict[tuple[str, str], list[Any]] = {}
        for row in state.approvals:
            by_target.setdefault((row.kind, row.target.partition("#")[0]), []).append(row)
        for request in self.world.requests:
            row = by_target[(request.kind, request.switch)].pop(0)
            self.pks[id(request)] = row.pk
            assert row.state == request.state
            if request.ends is None:
                request.ends = int((row.expires_at - BEGINNING).total_seconds())
            assert row.expires_at == to_time(request.ends)

    def _compare_told(self, state: Shown) -> None:
        rows = [row for row in state.audit if row.action != "gate.reported"]
        counts = Counter((row.target, row.action) for row in rows)
        assert counts == Counter(self.world.story), f"{counts} instead of {self.world.story}"
        self.world.story.clear()
        assert state.told == Counter(row.id for row in rows if has_message(row))
        self.last_audit = max([self.last_audit, *(row.id for row in state.audit)])

    def verify(self) -> None:
        """Assert that the audit trail is intact and that every switch's state follows from it."""
        assert audit.verify().intact
        rows = database_state.audit(self.first_audit)
        entries = retell((row.target, row.action, row.before, row.after) for row in rows)
        for id, switch in self.world.switches.items():
            assert entries.get(id, ("released", 100)) == (switch.state, switch.percent)


def as_json(plan: Plan) -> list[dict[str, Any]]:
    return [
        {
            "percent": share.percent,
            "dwell_seconds": share.dwell,
            "max_hold_seconds": share.max_hold,
            "gates": [
                {"type": "manual", "timeout_seconds": gate.timeout}
                if gate.kind == "manual"
                else {"type": gate.kind, "gate": gate.name}
                for gate in share.gates
            ],
        }
        for share in plan
    ]


def has_message(row: AuditRow) -> bool:
    """Return True if the audit row has a message of its own.

    The end of a ramp that waited for approval has none: the approval's message reports it.
    """
    began = row.action != "ramp.aborted" or "version" in row.after
    return began and row.action not in UNTOLD


def has_begun(row: RampRow) -> bool:
    return row.state != "pending"


def _compare_ramp(row: RampRow, ramp: Ramp) -> None:
    state = STATES.get(row.state, row.state)
    steps = [STEPS.get(step, step) for step in row.steps]
    assert (state, row.index, row.live) == (ramp.state, ramp.index, ramp.is_live)
    assert steps == [step.state for step in ramp.steps]
    passed = steps.index("pending") if "pending" in steps else len(steps)
    begun, rest = steps[:passed], steps[passed:]
    assert all(step == "passed" for step in begun[:-1])
    assert all(step == "pending" for step in rest)
    if ramp.step.state == "dwelling":
        assert row.ends[row.index] == to_time(ramp.step.ends)
    since = None if ramp.blind_since is None else to_time(ramp.blind_since)
    assert row.blind_since == since
