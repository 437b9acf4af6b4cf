"""A simulated month: switches, people who react late or never, and a clock that may stop.

People act between the ticks. Their actions are recorded here, apart from the product's own records,
so that the test can derive what must follow.
"""

import heapq
import itertools
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from zlib import crc32

from controlplane.core.actors import Actor
from controlplane.core.approvals import services as approvals
from controlplane.core.jobs import engine
from controlplane.notify.escalation import engine as escalation
from switches import services
from switches.ramps import actions, live_ramps
from switches.tests.month_expectations import DWELL, Ascent, Term

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
WEEK = 7 * DAY
DAYS = 32
BEGIN = datetime(2026, 10, 12, tzinfo=UTC)
END = BEGIN + DAYS * DAY
INCIDENT = BEGIN + 9 * DAY + timedelta(hours=3, seconds=30)
REASON = "card payments charged twice, INC-4411"
LASTS = {
    "45m": 45 * MINUTE,
    "1h": HOUR,
    "6h": 6 * HOUR,
    "24h": DAY,
    "26h": 26 * HOUR,
    "3d": 3 * DAY,
    "7d": WEEK,
    "14d": 14 * DAY,
    "30d": 30 * DAY,
}
SILENCE = HOUR
SILENCES = 20
IDLE = timedelta(hours=6)
"""Longest time between turns.

The clock turns at the hour after something fell due (for some of it at the minute), each hour
during escalations, and otherwise four times a day. In production it turns each second, which makes
nothing harder.
"""
DELAYS = [timedelta(minutes=minutes, seconds=30) for minutes in (3, 3, 12, 20, 50, 50, 200)]
NEVER = 26 * HOUR + timedelta(seconds=30)
ABORTED_AFTER = [timedelta(minutes=minutes, seconds=30) for minutes in (1, 8, 14)]

Act = Callable[[datetime], None]


class Month:
    """The simulated month, its ticks, and the `terms` and ramps (`ascents`) that must follow."""

    def __init__(self, seed: int, olga: Actor, ada: Actor) -> None:
        self.random = random.Random(seed)
        self.olga, self.ada = olga, ada
        self.terms: list[Term] = []
        self.ascents: list[Ascent] = []
        self.turns: list[datetime] = []
        self._agenda: list[tuple[datetime, int, Act]] = []
        self._order = itertools.count()
        self._wakings = {BEGIN + n * IDLE for n in range(DAYS * DAY // IDLE)}
        starts = [BEGIN + self.random.randrange(DAYS * 24 * 60) * MINUTE for _ in range(SILENCES)]
        self._silences = [(start, start + SILENCE) for start in starts]

    def plan(self, switches: int, *, in_the_incident: int) -> None:
        """Plan one engage for each switch, some of them by one incident in one second."""
        for number in range(switches):
            scope = "global" if number == 0 else self.random.choice(("segment", "feature"))
            scope = "experiment" if number % 5 == 4 else scope
            switch = "global:all" if scope == "global" else f"{scope}:s{number}"
            policy = self.random.choice(("hold", "ramp", "release"))
            policy = "hold" if scope == "global" else policy
            if number < in_the_incident:
                self._schedule(INCIDENT, self._engaging(switch, policy, "24h"))
                continue
            grid = 5 * MINUTE if number % 16 == 0 else 12 * HOUR  # Full hours need fewer ticks.
            start = self.random.randrange(28 * DAY // grid) * grid
            at = BEGIN + start + timedelta(seconds=30)
            self._schedule(at, self._engaging(switch, policy, self.random.choice(list(LASTS))))

    def run(self) -> None:
        while self._wakings and (turn := min(self._wakings)) < END:
            if self._agenda and self._agenda[0][0] < turn:
                at, _, act = heapq.heappop(self._agenda)
                act(at)
                continue
            self._wakings.discard(turn)
            over = [end for start, end in self._silences if start <= turn < end]
            if over:
                self._wakings.add(max(over))
            else:
                self._turn(turn)

    def _turn(self, now: datetime) -> None:
        """Run the ticks of one time once, or sometimes twice."""
        self.turns.append(now)
        for _ in range(2 if self.random.random() < 0.1 else 1):
            services.expire_due(now)
            # The tick comes round each second until no work is left.
            while engine.run_tick("ramps.turn", now):
                pass
            services.remind_due(now)
            services.call_for_reconfirmation(now)
            escalation.notify_due(now)
        if now.minute == 0:
            approvals.expire_due_requests(now)
        self._look_at_ramps(now)
        for term in self.terms:
            if not term.looked_after and term.ends_at <= now:
                term.looked_after = True
                if term.until is None:
                    self._look_after(term, now)
        if any(term.calls_at(now) for term in self.terms):
            self._wakings.add(BEGIN + ((now - BEGIN) // HOUR + 1) * HOUR)

    def _look_at_ramps(self, now: datetime) -> None:
        """Record the ramps that began, and abort some of them."""
        for ascent in self.ascents:
            ascent.look(now)
        for term in self.terms:
            ends = term.ends_at <= now and not term.looked_after and term.until is None
            if ends and term.policy == "ramp" and not term.permanent:
                term.ascent = self._rises(term, now, by_itself=True)
                if self.random.random() < 0.15:
                    self._schedule(now + self.random.choice(ABORTED_AFTER), self._aborting(term))
        under_way = [ascent for ascent in self.ascents if not ascent.is_over]
        self._wakings |= {ascent.moments[-1] + DWELL + MINUTE for ascent in under_way}

    def _rises(self, term: Term, now: datetime, *, by_itself: bool = False) -> Ascent:
        ascent = Ascent(term.switch, term.episode, [now], by_itself)
        self.ascents.append(ascent)
        return ascent

    def _aborting(self, term: Term) -> Act:
        def act(now: datetime) -> None:
            assert term.ascent is not None
            if term.ascent.is_over or term.until is not None:
                return
            ramp = live_ramps.find_live_ramp(term.switch)
            assert ramp is not None
            actions.abort(ramp_id=ramp.pk, reason=REASON, actor=self.olga, now=now)
            term.ascent.aborted_at = now
            self._wakings.add(now + timedelta(seconds=30))
            self._look_after(term, now)

        return act

    def _look_after(self, term: Term, now: datetime) -> None:
        """Let a person react to the end of a term: soon, or after more than a day."""
        soon = now + (self.random.choice(DELAYS) if self.random.random() > 0.03 else NEVER)
        if term.lets_go_by_itself:
            return
        acts = ["acknowledge", "extend", "release", "release"]
        if term.permanent:
            acts = ["acknowledge", "reconfirm", "reconfirm", "release"]
        act = self.random.choice(acts)
        if act == "acknowledge":
            self._schedule(soon, self._acknowledging(term))
            self._schedule(soon + self.random.choice((1, 4)) * DAY, self._releasing(term))
        elif act in ("extend", "reconfirm"):
            self._schedule(
                soon, self._extending(term) if act == "extend" else self._reconfirming(term)
            )
        else:
            self._schedule(soon, self._releasing(term))

    def _engaging(self, switch: str, policy: str, lasts: str) -> Act:
        def act(now: datetime) -> None:
            scope, _, key = switch.partition(":")
            episode = services.engage(
                scope=scope,
                key=key,
                reason=REASON,
                expires_in=lasts,
                on_expiry=policy,
                actor=self.olga,
                now=now,
            ).episode
            term = self._begins(Term(switch, episode.pk, policy, now, now + LASTS[lasts]))
            before_its_end = now + LASTS[lasts] * self.random.random()
            chance = self.random.random()
            if chance < 0.1:
                self._schedule(before_its_end, self._extending(term))
            elif chance < 0.2:
                self._schedule(before_its_end, self._releasing(term))
            elif chance < 0.3:
                self._schedule(before_its_end, self._acknowledging(term))
            elif chance < 0.4 and policy != "release":
                self._schedule(before_its_end, self._making_permanent(term))

        return act

    def _extending(self, term: Term) -> Act:
        def act(now: datetime) -> None:
            left = term.ends_at - now
            longer = [lasts for lasts in ("26h", "3d", "7d") if LASTS[lasts] > left]
            if not longer or not self._ends(term, now):
                return
            lasts = self.random.choice(longer)
            services.extend(**term.where, expires_in=lasts, reason=REASON, actor=self.olga, now=now)
            aborted = term.ascent is not None and term.ascent.aborted_at is not None
            policy = "hold" if aborted else term.policy
            self._begins(Term(term.switch, term.episode, policy, now, now + LASTS[lasts]))

        return act

    def _making_permanent(self, term: Term) -> Act:
        def act(now: datetime) -> None:
            if not self._ends(term, now):
                return
            extended = services.extend(
                **term.where, expires_in="permanent", reason=REASON, actor=self.olga, now=now
            )
            assert extended.approval is not None
            approvals.approve(approval_id=extended.approval.pk, comment="", actor=self.ada, now=now)
            self._begins(Term(term.switch, term.episode, term.policy, now, now + WEEK, True))

        return act

    def _reconfirming(self, term: Term) -> Act:
        def act(now: datetime) -> None:
            if self._ends(term, now):
                services.reconfirm(**term.where, reason=REASON, actor=self.olga, now=now)
                self._begins(Term(term.switch, term.episode, term.policy, now, now + WEEK, True))

        return act

    def _acknowledging(self, term: Term) -> Act:
        def act(now: datetime) -> None:
            if term.until is None:
                services.acknowledge(**term.where, actor=self.olga, now=now)
                if now >= term.ends_at:
                    term.acknowledged_at = now

        return act

    def _releasing(self, term: Term) -> Act:
        def act(now: datetime) -> None:
            if not self._ends(term, now):
                return
            mode = "ramp" if self.random.random() < 0.2 else "immediate"
            approval = services.release(
                **term.where, justification=REASON, mode=mode, actor=self.olga, now=now
            ).approval
            if approval is not None:
                approvals.approve(approval_id=approval.pk, comment="", actor=self.ada, now=now)
            if mode == "ramp":
                self._rises(term, now)
                self._wakings.add(BEGIN + ((now - BEGIN) // MINUTE + 7) * MINUTE)

        return act

    def _begins(self, term: Term) -> Term:
        self.terms.append(term)
        for before in (DAY, HOUR, timedelta()):
            moment = term.ends_at - before
            if moment > term.set_at:
                step = MINUTE if crc32(term.switch.encode()) % 16 == 0 else HOUR
                self._wakings.add(BEGIN - (BEGIN - moment) // step * step)
        return term

    @staticmethod
    def _ends(term: Term, now: datetime) -> bool:
        """End the term, and return True if it was open."""
        if term.until is not None:
            return False
        term.until = now
        return True

    def _schedule(self, moment: datetime, act: Act) -> None:
        heapq.heappush(self._agenda, (moment, next(self._order), act))
