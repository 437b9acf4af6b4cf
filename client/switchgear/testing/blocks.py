"""Context managers for the tests of a service, which engage switches or skip waits."""

import os
import threading
from collections.abc import Callable
from typing import Any, Self, TypeVar

from switchgear import cancellation, lifecycle
from switchgear.decorators import wrap
from switchgear.evaluation.snapshot import resolve_switch_id
from switchgear.evaluation.snapshot_store import FORCED_REASON

F = TypeVar("F", bound=Callable[..., Any])


class ReusableBlock:
    """A context manager and decorator that may be entered many times, also at once in threads."""

    def __init__(self, enter: Callable[[], None], leave: Callable[[], None]) -> None:
        self._enter, self._leave = enter, leave

    def __enter__(self) -> Self:
        self._enter()
        return self

    def __exit__(self, *_raised: object) -> None:
        self._leave()

    def __call__(self, function: F) -> F:
        return wrap(function, lambda _args, _kwargs: self)


def engaged(*switches: str, reason: str = "engaged in a test") -> ReusableBlock:
    """Return a context manager and decorator within which these switches are engaged.

    They are engaged regardless of the console, in all threads, for every client of this process,
    including clients created within the block. Blocks may be nested and overlap: a switch stays
    engaged until the last block with it ends; then the switch has its own state again. `global`
    alone means `global:all`. Raise :class:`ValueError` for an invalid switch.
    """
    if not switches:
        raise ValueError("pass the switches to engage")
    held = [(resolve_switch_id(switch), reason) for switch in switches]
    return ReusableBlock(lambda: _engaged_blocks.enter(held), lambda: _engaged_blocks.leave(held))


def no_wait() -> ReusableBlock:
    """Return a context manager and decorator within which no pattern waits, in the whole process.

    Back-offs, `Retry-After` and the pauses of consumers are skipped, and a call that finds a
    bulkhead full is rejected at once. Attempts are counted and jitter is drawn as usual, and no
    time passes for deadlines, budgets and breakers. A `sleep=` of your own, such as
    :meth:`FakeClock.sleep`, is still called. Waits that began earlier continue. Blocks may be
    nested, and may overlap in threads.
    """
    return ReusableBlock(lambda: _no_wait_blocks.count(1), lambda: _no_wait_blocks.count(-1))


class _EngagedBlocks:
    """The `with engaged(…)` blocks now running; engages their switches in all clients."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reasons: dict[str, list[str]] = {}

    def enter(self, held: list[tuple[str, str]]) -> None:
        with self._lock:
            for switch, reason in held:
                self._reasons.setdefault(switch, []).append(reason)
            self._apply_all([switch for switch, _ in held])

    def leave(self, held: list[tuple[str, str]]) -> None:
        with self._lock:
            for switch, reason in held:
                self._reasons[switch].remove(reason)
            self._apply_all([switch for switch, _ in held])

    def on_new_client(self, client: lifecycle.Client) -> None:
        with self._lock:
            for switch, reasons in self._reasons.items():
                _apply(client, switch, reasons)

    def _apply_all(self, switches: list[str]) -> None:
        clients = lifecycle.all_clients()  # Closed clients still evaluate.
        for switch in switches:
            for client in clients:
                _apply(client, switch, self._reasons[switch])
        for switch in switches:
            if not self._reasons.get(switch, True):
                del self._reasons[switch]

    def after_fork(self) -> None:
        self._lock = threading.Lock()


def _apply(client: lifecycle.Client, switch: str, reasons: list[str]) -> None:
    """Engage a switch in a client, with the last of the open `with` blocks' `reasons`.

    If no block is open, return the switch to its state in the console or the client's settings.
    """
    if reasons:
        client._store.force(switch, reasons[-1])
    elif switch in client._settings.forced:
        client._store.force(switch, FORCED_REASON)
    else:
        client._store.unforce(switch)


class _NoWaitBlocks:
    def __init__(self) -> None:
        self._entered = 0
        self._lock = threading.RLock()

    def count(self, step: int) -> None:
        with self._lock:
            self._entered += step
            cancellation.is_waiting_skipped = self._entered > 0

    def after_fork(self) -> None:
        self._lock = threading.RLock()


_engaged_blocks, _no_wait_blocks = _EngagedBlocks(), _NoWaitBlocks()
lifecycle.on_register.append(_engaged_blocks.on_new_client)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_engaged_blocks.after_fork)
    os.register_at_fork(after_in_child=_no_wait_blocks.after_fork)
