"""Token budgets of calls: tokens are reserved before a call, and settled by its actual usage."""

import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from switchgear.evaluation.keys import require_key_text
from switchgear.journal import record
from switchgear.llm.spend_ledger import SpendExceeded, SpendLedger
from switchgear.patterns import forks
from switchgear.patterns.parameters import SpendParameters

SLOTS = 20
"""Number of slots of a window; spent tokens count until their slot has left the window."""

log = logging.getLogger("switchgear")


@dataclass(frozen=True, slots=True)
class SpendUsage:
    """The tokens in use of a budget: `spent` within the window, `reserved` by calls in flight."""

    spent: int = 0
    reserved: int = 0

    @property
    def used(self) -> int:
        return self.spent + self.reserved


class Reservation:
    """Tokens of a budget set aside for one call, as returned by :meth:`SpendBudget.reserve`.

    Use it with `with` or `async with`. At the end of the block, the tokens counted by :meth:`add`
    are spent; if none were counted, the whole reservation is spent, or nothing if the block raised.
    A call of :meth:`settle`, with the usage that the provider reports, takes precedence. May be
    passed between threads.
    """

    def __init__(self, budget: "SpendBudget", ledgers: list[SpendLedger], tokens: int) -> None:
        self.reserved = tokens
        self.counted = 0
        """Tokens counted by :meth:`add`."""
        self._budget = budget
        self._ledgers = ledgers
        self._is_settled = False

    def add(self, tokens: int) -> None:
        """Count `tokens` of the answer as they are streamed.

        Tokens beyond the reservation are taken from the rest of the budget. Raise
        :class:`SpendExceeded` if nothing is left; the tokens streamed so far are spent all the
        same.
        """
        self._budget._add(self, _validate_tokens(tokens))

    def settle(self, tokens: int | None = None) -> None:
        """End the reservation: spend `tokens`, even more than reserved, and give the rest back.

        If `tokens` is None, spend the tokens that were counted; if none were, the whole
        reservation. Raise :class:`RuntimeError` if the reservation is settled already.
        """
        if tokens is None:
            tokens = self.counted or self.reserved
        self._budget._settle(self, _validate_tokens(tokens))

    def refund(self) -> None:
        """Give the whole reservation back to the budget, since the call has spent nothing."""
        self._budget._settle(self, 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if not self._is_settled:
            self.settle(None if error is None else self.counted)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: Any) -> None:
        self.__exit__(*raised)

    def __del__(self) -> None:
        if not self._is_settled:
            # No lock here: the code that this interrupts may hold it.
            self._budget._dropped.append((self._ledgers, self.reserved, self.counted))


class SpendBudget:
    """A limit of the tokens spent in a sliding window, for all calls together and for each key.

        budget = SpendBudget("model", SpendParameters(tokens=200_000, per_key_tokens=20_000))

        with budget.reserve(estimate(prompt) + 1_000, key="kim") as spend:
            spend.settle(ask_model(prompt).usage)

    A token counts from its reservation until one window after it was settled, or up to a twentieth
    of a window longer. Keys are strings, integers, UUIDs or enum members; `key_label` is the word
    for them in errors, such as "user". Beyond `max_keys` keys in a window, all further keys share
    one limit. The budget is per process. Safe to use from any thread. `clock` is monotonic.
    """

    def __init__(
        self,
        name: str = "unnamed",
        parameters: SpendParameters | None = None,
        *,
        key_label: str = "key",
        max_keys: int = 10_000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if max_keys < 1:
            raise ValueError(f"max_keys must be at least 1, not {max_keys}")
        self.name = name
        self._key_label = key_label
        self._max_keys = max_keys
        self._clock = clock
        self._has_warned = False
        self.configure(SpendParameters() if parameters is None else parameters)
        self.after_fork()
        forks.register(self)

    def configure(self, parameters: SpendParameters) -> None:
        """Apply new limits from now on. Tokens already spent stay spent."""
        if not isinstance(parameters, SpendParameters):
            raise TypeError(f"parameters must be SpendParameters, not {parameters!r:.100}")
        self.parameters = parameters

    def reserve(self, tokens: int, key: object = None) -> Reservation:
        """Set `tokens` aside for one call: an estimate of its prompt and its longest answer.

        Raise :class:`SpendExceeded` if the budget has no room for them, and :class:`TypeError` for
        a key of the wrong type.
        """
        _validate_tokens(tokens)
        text = require_key_text(key)
        with self._lock:
            now = self._close_dropped()
            ledgers = self._ledgers_of(text, now)
            refusal = self._refusal(ledgers, tokens, now)
            if refusal is None:
                for ledger in ledgers:
                    ledger.reserved += tokens
                    ledger.open_count += 1
                return Reservation(self, ledgers, tokens)
        record("token_budget_exceeded", self.name, per=refusal.per, tokens=tokens)
        raise refusal

    def look(self, key: object = None) -> SpendUsage:
        """Return the tokens in use now: of all calls, or of `key` if given."""
        text = require_key_text(key)
        with self._lock:
            now = self._close_dropped()
            ledger = self._total if text is None else self._keys.get(text)
            if ledger is None:
                return SpendUsage()
            ledger.drop_before(now - self.parameters.window_seconds)
            return SpendUsage(ledger.spent, ledger.reserved)

    def after_fork(self) -> None:
        """Start with an empty budget in a forked child: the calls in flight are the parent's."""
        self._lock = threading.RLock()
        self._dropped: deque[tuple[list[SpendLedger], int, int]] = deque()
        """Garbage-collected reservations whose tokens must be given back to the budget."""
        self._total = SpendLedger(None)
        self._keys: dict[str, SpendLedger] = {}
        self._other_keys = SpendLedger(self._key_label)
        self._swept_at = -math.inf

    def __repr__(self) -> str:
        return f"<SpendBudget {self.name} {self.parameters}>"

    def _add(self, reservation: Reservation, tokens: int) -> None:
        with self._lock:
            self._refuse_settled(reservation)
            now = self._close_dropped()
            reservation.counted += tokens
            over = reservation.counted - reservation.reserved
            if over <= 0:
                return
            refusal = self._refusal(reservation._ledgers, over, now)
            for ledger in reservation._ledgers:
                ledger.reserved += over
            reservation.reserved += over
        if refusal is not None:
            raise refusal

    def _settle(self, reservation: Reservation, spent: int) -> None:
        with self._lock:
            self._refuse_settled(reservation)
            reservation._is_settled = True
            self._close(reservation._ledgers, reservation.reserved, spent, self._clock())

    def _refuse_settled(self, reservation: Reservation) -> None:
        if reservation._is_settled:
            raise RuntimeError(
                "this reservation is already settled; make a new one for another call"
            )

    def _close_dropped(self) -> float:
        """Settle reservations that were garbage-collected unsettled; return the current time.

        The tokens counted are spent, and the rest is given back.
        """
        now = self._clock()
        while self._dropped:
            ledgers, reserved, counted = self._dropped.popleft()
            self._close(ledgers, reserved, counted, now)
        return now

    def _close(self, ledgers: list[SpendLedger], reserved: int, spent: int, now: float) -> None:
        width = self.parameters.window_seconds / SLOTS
        for ledger in ledgers:
            ledger.reserved -= reserved
            ledger.open_count -= 1
            ledger.spend(spent, now, width)

    def _refusal(self, ledgers: list[SpendLedger], tokens: int, now: float) -> SpendExceeded | None:
        """Return the error that refuses `tokens`, None if they fit in all `ledgers`.

        Of several errors, return the one with the longest wait.
        """
        window = self.parameters.window_seconds
        found: SpendExceeded | None = None
        for ledger in ledgers:
            limit = self.parameters.tokens if ledger.per is None else self.parameters.per_key_tokens
            ledger.drop_before(now - window)
            if limit is None or ledger.spent + ledger.reserved + tokens <= limit:
                continue
            after = None if tokens > limit else ledger.seconds_until(limit - tokens, now - window)
            if found is None or _wait_seconds(after) > _wait_seconds(found.retry_after):
                found = SpendExceeded(self.name, tokens, limit, ledger.per, window, after)
        return found

    def _ledgers_of(self, key: str | None, now: float) -> list[SpendLedger]:
        if key is None or self.parameters.per_key_tokens is None:
            return [self._total]
        ledger = self._keys.get(key)
        if ledger is None:
            if len(self._keys) >= self._max_keys:
                self._sweep(now)
            if len(self._keys) >= self._max_keys:
                return [self._total, self._other_keys]
            ledger = self._keys[key] = SpendLedger(self._key_label)
        return [self._total, ledger]

    def _sweep(self, now: float) -> None:
        """Drop the ledgers of keys with no tokens in use, at most once per slot of the window."""
        window = self.parameters.window_seconds
        if now - self._swept_at < window / SLOTS:
            return
        self._swept_at = now
        for key, ledger in list(self._keys.items()):
            ledger.drop_before(now - window)
            if not ledger.open_count and not ledger.spent:
                del self._keys[key]
        if len(self._keys) >= self._max_keys and not self._has_warned:
            self._has_warned = True
            log.warning(
                "switchgear: the token budget of %.100s has more than %d keys in its window:"
                " further keys share one limit; raise max_keys",
                *(self.name, self._max_keys),
            )


def _wait_seconds(retry_after: float | None) -> float:
    return math.inf if retry_after is None else retry_after


def _validate_tokens(tokens: object) -> int:
    if not isinstance(tokens, int) or isinstance(tokens, bool):
        raise TypeError(f"tokens must be a whole number, not {tokens!r:.50}")
    if tokens < 0:
        raise ValueError(f"tokens must be at least 0, not {tokens}")
    return tokens
