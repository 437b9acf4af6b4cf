"""Data of a circuit breaker: its generations, permits, events and status."""

from dataclasses import dataclass, field
from typing import Literal, get_args
from weakref import WeakKeyDictionary

from switchgear.patterns.sliding_window import CallCounts, SlidingWindow

State = Literal["closed", "open", "half_open"]
Mode = Literal["normal", "forced_open", "forced_closed", "disabled", "metrics_only"]
MODES: tuple[Mode, ...] = get_args(Mode)


class IllegalTransition(RuntimeError):
    """Raised for a state transition that a breaker must never make: a bug in this library."""


@dataclass(frozen=True, slots=True)
class StateTransition:
    """One change of a breaker's state, the `n`-th in this process.

    `at` is in monotonic seconds. `failure_rate` (None if unknown) and `calls` describe the window
    that caused the transition.
    """

    n: int
    before: State
    after: State
    at: float
    cause: str
    failure_rate: float | None = None
    calls: int = 0


@dataclass(frozen=True, slots=True)
class WouldOpen:
    """The event that a breaker in mode `metrics_only` reports instead of opening."""

    cause: str
    failure_rate: float | None
    calls: int


@dataclass(frozen=True, slots=True)
class BreakerStatus:
    """The state, the mode and the rates of a breaker.

    `since` and `open_until` are monotonic times. The rates are None below the minimum number of
    calls; unless the breaker is closed, they are the rates of its last evaluation.
    """

    state: State
    mode: Mode
    since: float
    failure_rate: float | None
    slow_rate: float | None
    calls: int
    open_until: float | None
    would_open: bool = False


@dataclass(eq=False, slots=True)
class Generation:
    """The period between two changes of a breaker's state; only its own calls count in it."""

    state: State
    since: float
    window: SlidingWindow
    is_counted: bool
    consecutive_failures: int = 0
    probes: "WeakKeyDictionary[CallPermit, float]" = field(default_factory=WeakKeyDictionary)
    """Probes in flight and their start times, oldest first. A garbage-collected permit can't be
    settled, so its probe makes room for another."""
    probe_counts: CallCounts = field(default_factory=CallCounts)
    permit: "CallPermit" = field(init=False)
    """The permit of all calls of a closed generation."""

    def __post_init__(self) -> None:
        self.permit = CallPermit(self)


class CallPermit:
    """A permit of a breaker for calls, bound to the generation in which they begin.

    All calls of a closed generation share one permit; each probe has its own. `succeed` counts a
    fast success without a lock. If `needs_evaluation` is True after that, the state machine must
    evaluate the window.
    """

    __slots__ = (
        "__weakref__",
        "generation",
        "is_block",
        "is_time_based",
        "needs_evaluation",
        "succeed",
    )

    def __init__(self, generation: Generation) -> None:
        self.generation = generation
        self.succeed = generation.window.succeed
        self.is_time_based = generation.window.is_time_based
        self.needs_evaluation = False
        self.is_block = False
        """True if the permit belongs to a `with` block."""


def initial_state(mode: Mode) -> State:
    """Return the state in which a breaker in `mode` starts."""
    return "open" if mode == "forced_open" else "closed"
