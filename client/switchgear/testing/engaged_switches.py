"""Switches engaged for the duration of a block, for every client of the process."""

import os
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Self, TypeVar

from switchgear import lifecycle
from switchgear.decorators import wrap
from switchgear.evaluation.snapshot import resolve_switch_id
from switchgear.evaluation.snapshot_store import FORCED_REASON

F = TypeVar("F", bound=Callable[..., Any])


def engaged(*switches: str, reason: str = "engaged in a test") -> "EngagedSwitches":
    """Return a context manager and decorator within which these switches are engaged.

    They are engaged whatever the console's state, for every client of this process, existing or
    created meanwhile, in any thread. Blocks may be nested and overlap: a switch stays engaged until
    the last block with it ends; then its earlier state applies again. `global` alone means
    `global:all`. Raise :class:`ValueError` for an invalid switch.
    """
    if not switches:
        raise ValueError("say which switches are to be engaged")
    return EngagedSwitches([(resolve_switch_id(switch), reason) for switch in switches])


class EngagedSwitches:
    """The result of :func:`engaged`; may be entered any number of times, also concurrently."""

    def __init__(self, held: list[tuple[str, str]]) -> None:
        self._held = held

    def __enter__(self) -> Self:
        _engaged_blocks.enter(self._held)
        return self

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        _engaged_blocks.leave(self._held)

    def __call__(self, function: F) -> F:
        """Return `function`, such as a test, with the switches engaged while it runs."""
        return wrap(function, self._around)

    def _around(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> AbstractContextManager[object]:
        return self


class _EngagedBlocks:
    """The switches that open blocks hold, each with a reason for every block."""

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
    """Engage a switch for the latest block, else by the client's settings, else by its console."""
    if reasons:
        client._store.force(switch, reasons[-1])
    elif switch in client._settings.forced:
        client._store.force(switch, FORCED_REASON)
    else:
        client._store.unforce(switch)


_engaged_blocks = _EngagedBlocks()
lifecycle.on_register.append(_engaged_blocks.on_new_client)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_engaged_blocks.after_fork)
