"""What happens to clients when their process forks, when it ends, and when they are forgotten."""

import atexit
import logging
import os
import time
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from switchgear.console.change_notifier import ChangeNotifier
    from switchgear.console.policy_follower import PolicyFollowers
    from switchgear.console.reporter import Reporter
    from switchgear.console.snapshot_follower import SnapshotFollower
    from switchgear.evaluation.snapshot_store import Memory
    from switchgear.policies.registry import Registry
    from switchgear.settings import Settings

EXIT_SECONDS = 1.0
"""For the last reports of all clients together, when the process ends."""

log = logging.getLogger("switchgear")


class Client(Protocol):
    """As much of a client as is seen to here."""

    _change_notifier: "ChangeNotifier"
    _policy_followers: "PolicyFollowers"
    _reporter: "Reporter"
    _follower: "SnapshotFollower"
    _memory: "Memory"
    _registry: "Registry"
    _settings: "Settings"

    def _after_fork(self) -> None: ...

    def close(self, seconds: float = ...) -> None: ...


newcomers: list[Callable[[Client], None]] = []
"""Are called with each client that is made, before it starts."""


class Workers(NamedTuple):
    """What works for a client, and does not know it."""

    reporter: "Reporter"
    follower: "SnapshotFollower"
    policy_followers: "PolicyFollowers"
    registry: "Registry"
    change_notifier: "ChangeNotifier"

    def stop_hearing(self) -> None:
        """End all but what tells the console; returns at once."""
        self.follower.stop()
        self.policy_followers.stop()
        self.registry.stop()


_Ref = weakref.ReferenceType[Client]
_open: dict[_Ref, Workers] = {}
"""The clients that are not closed, with what works for them. Each change of it is one step, so it
takes no lock: a finalizer may come at any moment, in any thread."""
_closed: dict[_Ref, None] = {}
"""Those that are closed, as long as somebody may ask them."""
_forsaken: list[object] = []
"""What was the parent's. Its locks may be held by threads that are not here, and to let go of a
buffer is to wait for its lock. So nothing of it is ever let go."""


def clients() -> list[Client]:
    """Those of this process that are not closed."""
    return [client for ref in list(_open) if (client := ref()) is not None]


def everyone() -> list[Client]:
    """As :func:`clients`, with those that are closed and can still be asked."""
    refs = {**dict(_open), **dict(_closed)}
    return [client for ref in refs if (client := ref()) is not None]


def register(client: Client) -> None:
    """See to `client` until it is closed."""
    _open[weakref.ref(client, _collected)] = workers(client)
    for newcomer in list(newcomers):
        newcomer(client)


def forget(client: Client) -> None:
    """It is closed."""
    _closed[weakref.ref(client, _closed_collected)] = None
    _open.pop(weakref.ref(client), None)


def _collected(ref: _Ref) -> None:
    """Nobody can ask it any more, and nobody has closed it: its threads are to end."""
    workers = _open.pop(ref, None)
    if workers is not None:
        workers.change_notifier.stop_from_finalizer()
        workers.registry.abandon()
        workers.reporter.stop_from_finalizer(workers.stop_hearing)


def _closed_collected(ref: _Ref) -> None:
    _closed.pop(ref, None)


def workers(client: Client) -> Workers:
    """Those of the present process."""
    return Workers(
        client._reporter,
        client._follower,
        client._policy_followers,
        client._registry,
        client._change_notifier,
    )


def _after_fork_in_child() -> None:
    for client in everyone():
        parents = workers(client)
        _forsaken.append(parents)
        try:
            client._after_fork()
            parents.reporter.close_in_child()
            parents.follower.close_in_child()
            parents.policy_followers.close_in_child()
        except Exception:  # Whoever forked must not pay for it, nor the other clients.
            log.exception("switchgear: a client does not go on after a fork")
        if weakref.ref(client) in _open:
            _open[weakref.ref(client)] = workers(client)


def _at_exit() -> None:
    """Close all at once, so that the slowest does not use up the time of the others."""
    until = time.monotonic() + EXIT_SECONDS
    still_open = clients()
    for client in still_open:
        workers(client).stop_hearing()
        client._reporter.begin_stop(EXIT_SECONDS)
    for client in still_open:
        client.close(max(0.0, until - time.monotonic()))


atexit.register(_at_exit)
if hasattr(os, "register_at_fork"):
    # After those of threading and logging, which were registered when they were imported.
    os.register_at_fork(after_in_child=_after_fork_in_child)
