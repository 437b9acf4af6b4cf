"""Management of clients at forks, at process exit and on garbage collection."""

import atexit
import os
import time
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol

from switchgear.journal import log

if TYPE_CHECKING:
    from switchgear.console.change_notifier import ChangeNotifier
    from switchgear.console.reporter import Reporter
    from switchgear.console.snapshot_follower import SnapshotFollower
    from switchgear.evaluation.snapshot_store import SnapshotStore
    from switchgear.policies.policy_follower import PolicyFollowers
    from switchgear.policies.registry import Registry
    from switchgear.settings import Settings

EXIT_SECONDS = 1.0
"""Time for the final reports of all clients together at process exit."""


class Client(Protocol):
    """Interface of :class:`Switchgear`, as far as this module needs it."""

    _workers: "Workers"
    _store: "SnapshotStore"
    _settings: "Settings"

    def _after_fork(self) -> None: ...

    def close(self, seconds: float = ...) -> None: ...


on_register: list[Callable[[Client], None]] = []
"""Callbacks for each new client, before it starts."""


class Workers(NamedTuple):
    """The threads and stores of a client, which do not keep the client itself alive."""

    reporter: "Reporter"
    follower: "SnapshotFollower"
    policy_followers: "PolicyFollowers"
    registry: "Registry"
    change_notifier: "ChangeNotifier"

    def stop_following(self) -> None:
        """Stop all threads but the reporter, without waiting for their end."""
        self.follower.stop()
        self.policy_followers.stop()
        self.registry.stop()


_Ref = weakref.ReferenceType[Client]
_open: dict[_Ref, Workers] = {}
"""The open clients and their workers. Each change is one atomic step without a lock, since a
finalizer may run at any moment."""
_closed: dict[_Ref, None] = {}
"""Closed clients that are still referenced."""
_parents_workers: list[object] = []
"""The parent's workers, kept forever: freeing them could wait forever for a lock whose holder does
not exist in the child."""


def open_clients() -> list[Client]:
    """Return the clients of this process that are not closed."""
    return [client for ref in list(_open) if (client := ref()) is not None]


def all_clients() -> list[Client]:
    """Return the clients of this process, closed ones included."""
    refs = {**dict(_open), **dict(_closed)}
    return [client for ref in refs if (client := ref()) is not None]


def register(client: Client) -> None:
    """Restart `client` in forked children, and close it at exit, until it is closed."""
    _open[weakref.ref(client, _on_collected)] = client._workers
    for callback in list(on_register):
        callback(client)


def unregister(client: Client) -> None:
    """Record that `client` is closed."""
    _closed[weakref.ref(client, lambda ref: _closed.pop(ref, None))] = None
    _open.pop(weakref.ref(client), None)


def _on_collected(ref: _Ref) -> None:
    """End the threads of a client that was garbage-collected without being closed."""
    workers = _open.pop(ref, None)
    if workers is not None:
        workers.change_notifier.stop_from_finalizer()
        workers.registry.stop_from_finalizer()
        workers.reporter.stop_from_finalizer(workers.stop_following)


def _after_fork_in_child() -> None:
    for client in all_clients():
        parents = client._workers
        _parents_workers.append(parents)
        try:
            client._after_fork()
            parents.reporter.close_in_child()
            parents.follower.close_in_child()
            parents.policy_followers.close_in_child()
        except Exception:  # It must not reach the caller of fork, nor skip other clients.
            log.exception("switchgear: a client can't be used after a fork")
        if weakref.ref(client) in _open:
            _open[weakref.ref(client)] = client._workers


def _at_exit() -> None:
    """Close all clients concurrently, so that a slow one does not use up the time of the others."""
    until = time.monotonic() + EXIT_SECONDS
    still_open = open_clients()
    for client in still_open:
        client._workers.stop_following()
        client._workers.reporter.begin_stop(EXIT_SECONDS)
    for client in still_open:
        client.close(max(0.0, until - time.monotonic()))


atexit.register(_at_exit)
if hasattr(os, "register_at_fork"):
    # Runs after the hooks of threading and logging, which register on import.
    os.register_at_fork(after_in_child=_after_fork_in_child)
