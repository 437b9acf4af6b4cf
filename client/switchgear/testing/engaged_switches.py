"""Switches engaged for a while, for every client of the process."""

import os
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Self, TypeVar

from switchgear import lifecycle
from switchgear.decorators import wrap
from switchgear.evaluation.snapshot import switch_id
from switchgear.evaluation.snapshot_store import FORCED_REASON

F = TypeVar("F", bound=Callable[..., Any])


def engaged(*switches: str, reason: str = "engaged in a test") -> "Engaged":
    """These switches are engaged within the block, whatever the console says, for every client of
    this process: those there are and those made meanwhile, in any thread. Also a decorator.

    Blocks may be nested and overlap: a switch stays engaged until the last one that engages it is
    left. What was there before counts again then. `global` alone means `global:all`. Raises
    :class:`ValueError` for what is no switch.
    """
    if not switches:
        raise ValueError("say which switches are to be engaged")
    return Engaged([(switch_id(switch), reason) for switch in switches])


class Engaged:
    """What :func:`engaged` gives: to be entered as often as you like, also by several at once."""

    def __init__(self, held: list[tuple[str, str]]) -> None:
        self._held = held

    def __enter__(self) -> Self:
        _blocks.enter(self._held)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _blocks.leave(self._held)

    def __call__(self, function: F) -> F:
        """`function`, a test perhaps, with the switches engaged while it runs."""
        return wrap(function, self._around)

    def _around(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> AbstractContextManager[object]:
        return self


class _Blocks:
    """Which switches blocks hold at the moment, each with a reason for every block."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reasons: dict[str, list[str]] = {}

    def enter(self, held: list[tuple[str, str]]) -> None:
        with self._lock:
            for switch, reason in held:
                self._reasons.setdefault(switch, []).append(reason)
            self._show([switch for switch, _ in held])

    def leave(self, held: list[tuple[str, str]]) -> None:
        with self._lock:
            for switch, reason in held:
                self._reasons[switch].remove(reason)
            self._show([switch for switch, _ in held])

    def newcomer(self, client: lifecycle.Client) -> None:
        with self._lock:
            for switch, reasons in self._reasons.items():
                _settle(client, switch, reasons)

    def _show(self, switches: list[str]) -> None:
        clients = lifecycle.all_clients()  # One that is closed can still be asked.
        for switch in switches:
            for client in clients:
                _settle(client, switch, self._reasons[switch])
        for switch in switches:
            if not self._reasons.get(switch, True):
                del self._reasons[switch]

    def after_fork(self) -> None:
        self._lock = threading.Lock()


def _settle(client: lifecycle.Client, switch: str, reasons: list[str]) -> None:
    """By the latest block, else by what the client was made with, else by its console."""
    if reasons:
        client._memory.force(switch, reasons[-1])
    elif switch in client._settings.forced:
        client._memory.force(switch, FORCED_REASON)
    else:
        client._memory.unforce(switch)


_blocks = _Blocks()
lifecycle.on_register.append(_blocks.newcomer)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_blocks.after_fork)
