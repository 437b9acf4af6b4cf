"""A model of a ramp, written from the contract alone: plain data, no code of the product.

Times are whole seconds on a clock that tests set. A gate's verdict is `pass`, `fail`, `no_data` or
`waiting`.
"""

from dataclasses import dataclass, field, replace

FRESH = 60
LEASE = 15
RETRY = 10
NEVER = -(10**9)
DWELLING, PASSED, FAILED, PENDING = "dwelling", "passed", "failed", "pending"
AT_WORK = ("running", "holding", "paused")


class Refused(Exception):
    """Raised if the model refuses an action; the product may give any of these reasons."""

    def __init__(self, *kinds: str) -> None:
        super().__init__(*kinds)
        self.kinds = frozenset(kinds)


@dataclass(frozen=True)
class Person:
    name: str
    approves: bool


@dataclass(frozen=True)
class Gate:
    kind: str
    name: str = ""
    timeout: int = 7200


@dataclass(frozen=True)
class Share:
    """A step of a modeled plan."""

    percent: float
    dwell: int
    max_hold: int = 3600
    gates: tuple[Gate, ...] = ()


Plan = tuple[Share, ...]
AUTOMATIC: Plan = (Share(5, 300), Share(25, 300), Share(100, 300))


@dataclass(frozen=True)
class Said:
    """An external gate's latest verdict, the time of its observation, and that of the last fail."""

    verdict: str
    at: int
    failed: int


Wish = tuple[Plan | None, str]
"""The plan of a requested release (None: immediate), and the state of its switch."""


@dataclass
class Request:
    """A modeled approval request, for a release or a step's manual gate."""

    kind: str
    switch: str
    by: str
    ends: int | None
    wish: Wish = (None, "")
    state: str = "pending"
    decided_by: str = ""

    def is_open(self, now: int) -> bool:
        return self.state == "pending" and (self.ends is None or self.ends > now)


@dataclass
class Step:
    """A modeled step; `is_told` is True once its hold was announced."""

    share: Share
    state: str = PENDING
    began: int = 0
    ends: int = 0
    seen: list[str | None] = field(default_factory=list)
    asked: Request | None = None
    is_told: bool = False

    def set_right(self, now: int) -> "Step":
        """Return the step, corrected after the clock was set back.

        A step that began in the future begins again.
        """
        if self.began > now + FRESH:
            return replace(self, began=now, ends=now + self.share.dwell, is_told=False)
        if self.ends > now + self.share.dwell + FRESH:
            return replace(self, ends=now + self.share.dwell)
        return self


@dataclass
class Ramp:
    """A modeled ramp; `turn` counts the claims by workers and the interventions of people.

    A worker that claimed it in an earlier turn can't change it any more.
    """

    switch: str
    by: str
    plan: Plan
    state: str = "running"
    index: int = 0
    steps: list[Step] = field(default_factory=list)
    turn: int = 0
    leased_until: int | None = None
    touched: int = 0
    not_before: int = 0
    blind_since: int | None = None
    paused_at: int | None = None
    effects: list[tuple[int, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.steps = [Step(share) for share in self.plan]

    @property
    def step(self) -> Step:
        return self.steps[self.index]

    @property
    def is_live(self) -> bool:
        return self.state not in ("completed", "aborted")

    @property
    def is_last(self) -> bool:
        return self.index + 1 == len(self.steps)

    @property
    def next_percent(self) -> float:
        """Return the share after the current step."""
        return 100 if self.is_last else self.steps[self.index + 1].share.percent

    def set_right(self, now: int) -> None:
        """Correct times that lie in the future because the clock was set back."""
        if self.paused_at is not None and self.paused_at > now + FRESH:
            self.step.ends -= self.paused_at - now
            self.paused_at = now
        if self.step.began > now + FRESH:
            self.blind_since = None
            self.state = "running" if self.state == "holding" else self.state
        elif self.blind_since is not None and self.blind_since > now + FRESH:
            self.blind_since = now
        self.steps[self.index] = self.step.set_right(now)

    def enter(self, index: int, now: int) -> None:
        self.index = index
        step = self.step
        step.state, step.began, step.ends = DWELLING, now, now + step.share.dwell
        step.seen = [None] * len(step.share.gates)
        self.blind_since = None
        self.effects.append((index, "publish"))

    def fence_worker(self) -> None:
        """Start a new turn without a worker, so that the present worker can't change the ramp."""
        self.turn, self.leased_until = self.turn + 1, None

    def is_free(self, now: int) -> bool:
        """Return True if no worker has a lease; a lease lasts 15 s unless the clock is changed."""
        left = 0 if self.leased_until is None else self.leased_until - now
        return left <= 0 or left > LEASE

    def has_to_be_seen(self, now: int) -> bool:
        """Return True if a worker that runs now must evaluate the ramp.

        After the clock was set back by less than a lease, the evaluation may be late by as much.
        """
        at_work = self.state in AT_WORK or self.state == "failed"
        set_back = self.touched > now + LEASE
        in_time = now >= max(self.touched, self.not_before)
        return at_work and self.is_free(now) and (in_time or set_back)

    def may_be_seen(self, now: int) -> bool:
        return (self.state in AT_WORK or self.state == "failed") and self.is_free(now)


@dataclass(frozen=True)
class Move:
    """A ramp's next transition: `advance`, `hold`, `compensate` or `stay`."""

    kind: str
    blind_since: int | None = None


def decide(ramp: Ramp, verdicts: list[str], now: int) -> Move:
    """Return the ramp's next transition.

    A failing gate compensates it at any time. Otherwise it stays while it is paused or in its
    dwell. Without data it holds for at most `max_hold`; for a manual gate it holds until the
    request ends.
    """
    if ramp.state == "failed" or "fail" in verdicts:
        return Move("compensate")
    if ramp.state == "paused" or now < ramp.step.ends:
        return Move("stay")
    if all(verdict == "pass" for verdict in verdicts):
        return Move("advance")
    if "no_data" not in verdicts:
        return Move("hold")
    since = now if ramp.blind_since is None else ramp.blind_since
    if now - since >= ramp.step.share.max_hold:
        return Move("compensate")
    return Move("hold", since)


def judge(gate: Gate, step: Step, observation: Said | None, now: int) -> str:
    """Return the verdict of a gate; a fail since the step began outweighs any later observation."""
    if gate.kind == "manual":
        return _answer(step.asked, now)
    if observation is None:
        return "no_data"
    if step.began <= observation.failed <= now + FRESH:
        return "fail"
    if observation.at < step.began or abs(now - observation.at) > FRESH:
        return "no_data"
    return "pass" if observation.verdict == "ok" else "fail"


def _answer(request: Request | None, now: int) -> str:
    if request is None or request.is_open(now):
        return "waiting"
    return "pass" if request.state == "approved" else "fail"
