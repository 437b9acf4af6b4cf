"""A snapshot store of a test, with a notifier of its changes."""

import json
from datetime import UTC, datetime

from switchgear.clock import ConsoleClock
from switchgear.console.change_notifier import ChangeNotifier
from switchgear.evaluation.snapshot import parse_snapshot
from switchgear.evaluation.snapshot_store import SnapshotStore
from switchgear.testing import FakeClock

EPOCH = "6b1f6f0c-5a4e-4f9b-9f57-0f6d7c8f2f01"


class NotifiedStore:
    """A snapshot store that is given snapshots, and a change notifier."""

    def __init__(self):
        self.clock = FakeClock()
        self.store = SnapshotStore(ConsoleClock(self.clock))
        self.store.clock.trust_local()
        self.notifier = ChangeNotifier(self.store)
        self.version = 0

    def show(self, *rows):
        self.version += 1
        document = {"schema": 1, "epoch": EPOCH, "version": self.version, "switches": list(rows)}
        assert self.store.accept(parse_snapshot(json.dumps(document).encode()))

    def expiry(self, seconds):
        return datetime.fromtimestamp(self.clock.wall() + seconds, UTC).isoformat()


def row(switch, state="engaged", percent=0, reason="a leak", **more):
    return {
        "id": switch,
        "state": state,
        "allow_percent": percent,
        "salt": "s",
        "reason": reason,
        **more,
    }
