"""A slow oracle of the breaker, written from its description and not from its code.

It keeps every outcome forever, and scans all of them each time.
"""

import math
from dataclasses import dataclass, field

from switchgear.patterns.parameters import BreakerParameters


@dataclass
class Call:
    era: int
    probe: bool
    counted: bool
    began: float


@dataclass
class Oracle:
    rules: BreakerParameters
    now: float
    drawn: float
    state: str = "closed"
    mode: str = "normal"
    era: int = 0
    outcomes: list[tuple[float, bool, bool]] = field(default_factory=list)
    probes: list[tuple[bool, bool]] = field(default_factory=list)
    running: list[Call] = field(default_factory=list)
    since: float = 0.0
    reopenings: int = 0
    open_for: float = 0.0
    open_until: float = 0.0
    would_open: bool = False
    changes: list[tuple[int, str, str, float]] = field(default_factory=list)
    totals: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(("success", "failure", "slow", "rejected"), 0)
    )

    def __post_init__(self) -> None:
        self.since = self.now

    def change(self, to: str, at: float) -> None:
        if to != self.state:
            self.changes.append((len(self.changes) + 1, self.state, to, at))
            self.since = at
        self.state = to
        self.era += 1
        self.outcomes, self.probes, self.running = [], [], []

    def pass_time(self, seconds: float) -> None:
        self.now += seconds

    def notice(self) -> None:
        """End half-open at the moment a probe exceeds its limit, noticed or not."""
        limit = self.rules.half_open_max_seconds
        if self.state != "half_open" or limit == 0 or not self.running:
            return
        deadline = min(call.began for call in self.running) + limit
        if self.now >= deadline:
            self.change("open", deadline)
            self.open_until = deadline + self.open_for

    def ask(self) -> "Call | float | None":
        """Return a call, or the seconds until one may be made, None if an operator refuses it."""
        if self.mode == "forced_open":
            self.totals["rejected"] += 1
            return None
        if self.mode == "normal":
            self.notice()
            self.judge_probes()
            if self.state == "open" and self.now >= self.open_until:
                self.change("half_open", self.now)
            if self.state == "open":
                self.totals["rejected"] += 1
                return self.open_until - self.now
            if self.state == "half_open":
                full = len(self.running) >= self.rules.half_open_concurrent
                spent = len(self.running) + len(self.probes) >= self.rules.half_open_calls
                if full or spent:
                    self.totals["rejected"] += 1
                    return 0.0
        is_probe = self.state == "half_open"
        call = Call(self.era, is_probe, self.mode != "disabled", self.now)
        if is_probe:
            self.running.append(call)
        return call

    def end(self, call: Call, failed: bool, seconds: float) -> None:
        limit = self.rules.slow_call_seconds
        slow = limit is not None and seconds > limit
        if not call.counted:
            return
        self.totals["failure" if failed else "success"] += 1
        self.totals["slow"] += slow
        if call.probe:
            self.end_probe(call, failed, slow)
        elif call.era == self.era:
            self.outcomes.append((self.now, failed, slow))
            if self.mode != "forced_closed" and self.is_bad():
                if self.mode == "metrics_only":
                    self.would_open = True
                else:
                    self.reopenings = 0
                    self.open()

    def end_probe(self, call: Call, failed: bool, slow: bool) -> None:
        if call.era == self.era:
            self.notice()
        if call.era == self.era:
            self.drop(call)
            self.probes.append((failed, slow))
            self.judge_probes()

    def take_back(self, call: Call) -> None:
        if call.probe and call.era == self.era:
            self.drop(call)
            self.judge_probes()

    def lose(self, call: Call) -> None:
        """Drop a call without an outcome; the breaker notices at its next use."""
        if call.probe and call.era == self.era:
            self.drop(call)

    def drop(self, call: Call) -> None:
        self.running = [each for each in self.running if each is not call]

    def judge_probes(self) -> None:
        if self.state != "half_open" or self.running:
            return
        done = len(self.probes)
        if done < self.rules.half_open_calls:
            return
        failing = sum(failed for failed, _ in self.probes) / done >= self.rules.failure_rate
        sluggish = sum(slow for _, slow in self.probes) / done >= self.rules.slow_call_rate
        if failing or (sluggish and self.rules.slow_call_seconds is not None):
            self.reopenings += 1
            self.open()
        else:
            self.reopenings = 0
            self.change("closed", self.now)

    def open(self) -> None:
        base = min(
            self.rules.open_seconds * self.rules.open_multiplier**self.reopenings,
            self.rules.open_max_seconds,
        )
        least = base - base * self.rules.open_jitter
        most = min(base + base * self.rules.open_jitter, self.rules.open_max_seconds)
        self.open_for = least + self.drawn * (most - least)
        self.change("open", self.now)
        self.open_until = self.now + self.open_for

    def in_window(self) -> list[tuple[bool, bool]]:
        size = self.rules.window_size or 0
        if self.rules.window_type == "count":
            return [(failed, slow) for _, failed, slow in self.outcomes[-size:]]
        oldest = math.floor(self.now) - size
        return [(failed, slow) for at, failed, slow in self.outcomes if math.floor(at) > oldest]

    def has_enough(self) -> bool:
        needed = self.rules.minimum_calls
        if self.rules.window_type == "count":
            needed = min(needed, self.rules.window_size or 0)
        return len(self.in_window()) >= needed

    def is_bad(self) -> bool:
        seen, rules = self.in_window(), self.rules
        failures = [failed for failed, _ in seen].count(True)
        if rules.failure_count is not None:
            return failures >= rules.failure_count
        if not self.has_enough():
            return False
        row = 0
        for _, failed, _ in self.outcomes:
            row = row + 1 if failed else 0
        slow = [slow for _, slow in seen].count(True)
        return (
            failures / len(seen) >= rules.failure_rate
            or (rules.consecutive_failures is not None and row >= rules.consecutive_failures)
            or (rules.slow_call_seconds is not None and slow / len(seen) >= rules.slow_call_rate)
        )

    def force(self, mode: str) -> None:
        if mode != self.mode:
            self.begin(mode)

    def begin(self, mode: str) -> None:
        self.mode, self.would_open, self.reopenings = mode, False, 0
        self.change("open" if mode == "forced_open" else "closed", self.now)

    def configure(self, rules: BreakerParameters) -> None:
        old, self.rules = self.rules, rules
        other = (old.window_type, old.window_size) != (rules.window_type, rules.window_size)
        if other and self.state == "closed":
            self.era += 1
            self.outcomes = []
        self.notice()
        self.judge_probes()
