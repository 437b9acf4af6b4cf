"""The switch keys of one guarded call, which are checked before it begins and while it waits."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from switchgear.cancellation import CancelSource, SourceScope, TaskCancellation, enter, leave
from switchgear.evaluation.decisions import Decision
from switchgear.evaluation.evaluation_view import EvaluationView
from switchgear.evaluation.snapshot_store import SnapshotStore
from switchgear.refusals import Refused

NOTHING_KNOWN = "no snapshot yet, and this guard blocks unknown calls"
NO_KEY = "a key of this call is invalid, and this guard blocks unknown calls"


class SwitchEngaged(Refused):
    """Raised if a switch stops this call: `switch` is its id, and `reason` its reason.

    `switch` is None if a guard blocks because no snapshot is known. Retries are useless until the
    switch is released. The error can be pickled and recreated from its `args`, which are plain
    values, so it survives other processes and Celery's result backends.
    """

    __module__ = "switchgear.guards"  # Pickles name it so.

    def __init__(
        self,
        switch: str | None,
        reason: str | None = None,
        version: int | None = None,
        known: bool = True,
    ) -> None:
        super().__init__(switch, reason, version, known)
        self.switch = switch
        self.reason = reason
        self.decision = Decision(False, switch, reason, version, known)

    def __str__(self) -> str:
        return f"stopped by {self.switch or 'a guard'}: {self.reason}"


@dataclass(eq=False, slots=True)
class GuardedKeys:
    """The switches of one call, a :class:`CancelSource`.

    They are checked before the call begins, and again during waits and before each attempt and
    fallback target in the call. Only the first check is counted. For a ramping switch without a
    targeting key, only the first check decides, at random; an engaged switch refuses in later
    checks, too.
    """

    guard: object
    cancels: bool
    """True if a switch that is engaged also cancels calls that are already running."""
    store: SnapshotStore
    query: tuple[Any, Any, Any, Any]
    blocks_unknown: bool
    others: Sequence[CancelSource]
    _view: EvaluationView | None = None
    """The snapshot view in which all calls with these keys are allowed; `_cell` counts them."""
    _cell: Any = None

    def check_call(self) -> Decision:
        """Decide if a call may begin, and count it. Raise :class:`SwitchEngaged` if it may not."""
        cached = self._cell
        if self.store.view is self._view and cached.is_cached:
            cached.count_call()
            decision: Decision = cached.decision
            return decision
        view = self.store.view
        cached = view.cached_query(self.query[:3])
        if cached is not None and cached.decision is not None:
            cached.count_call()
            decision = cached.decision
        else:
            decision = self.store.decide(*self.query)
            cached = view.cached_query(self.query[:3])
        if (refusal := self._make_refusal(decision)) is not None:
            raise refusal
        if cached is not None and cached.decision is decision:
            self._cell, self._view = cached, view
        return decision

    def refusal(self) -> Refused | None:
        if self.store.view is not self._view:
            refusal = self._make_refusal(self.store.recheck(*self.query))
            if refusal is not None:
                return refusal
        for other in self.others:
            if (found := other.refusal()) is not None:
                return found
        return None

    def subscribe(self, callback: Callable[[], object]) -> Callable[[], object]:
        ends = [self.store.subscribe(callback)]
        ends += [other.subscribe(callback) for other in self.others]

        def end() -> None:
            for each in ends:
                each()

        return end

    def _make_refusal(self, decision: Decision) -> SwitchEngaged | None:
        if not decision.allowed:
            return SwitchEngaged(decision.switch, decision.reason, decision.version, decision.known)
        if self.blocks_unknown and not decision.known:
            why = NOTHING_KNOWN if decision.version is None else NO_KEY
            return SwitchEngaged(None, why, decision.version, known=False)
        return None


class GuardedSteps:
    """A context manager around each step of one generator.

    The keys are checked before the first step, unless the call `has_begun`, and are a cancel source
    within each step. With `on_engage="cancel"` they are checked before every step, and a step of an
    asynchronous generator is cancelled while it awaits.
    """

    def __init__(self, keys: GuardedKeys, is_async: bool, *, has_begun: bool) -> None:
        self._keys = keys
        self._cancels, self._is_async = keys.cancels, is_async
        self._has_begun = has_begun
        self._scope: SourceScope | None = None

    def __enter__(self) -> None:
        if not self._has_begun:
            self._has_begun = True
            self._keys.check_call()
        elif self._cancels and (refusal := self._keys.refusal()) is not None:
            raise refusal
        self._scope = enter(self._keys, cancels=self._cancels and self._is_async)

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if self._scope is not None:
            leave(self._scope, error)


async def run_cancellable(
    keys: GuardedKeys,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> Any:
    cancellation = TaskCancellation(keys)
    try:
        value = await function(*args, **kwargs)
    except BaseException as error:
        cancellation.end(error)
        raise
    cancellation.end(None)
    return value
