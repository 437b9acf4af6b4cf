"""A console in memory, which its clients follow at once."""

import json
import threading
import uuid
import weakref
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Literal

from switchgear.client import Switchgear
from switchgear.clock import SystemTime, Time
from switchgear.deciding import snapshot
from switchgear.deciding.snapshot import switch_id

OnExpiry = Literal["hold", "ramp", "release"]

DAY = timedelta(days=1)


class Console:
    """Engages, ramps and releases, as far as its clients can see: whoever made a change finds it in
    force when the method returns. `time` is that of the console and of its clients, such as a
    :class:`FakeClock`; the machine's by default.

    Nothing happens by itself but what clients do: an engagement whose `on_expiry` is `release` ends
    for them five seconds after its expiry, every other one goes on until this console is told.
    """

    def __init__(self, time: Time | None = None) -> None:
        self.time: Time = time or SystemTime()
        self._epoch = str(uuid.uuid4())
        self._version = 0
        self._rows: dict[str, dict[str, Any]] = {}
        self._clients: weakref.WeakSet[Switchgear] = weakref.WeakSet()
        self._lock = threading.Lock()

    def client(self, **arguments: Any) -> Switchgear:
        """A client of this console, by the `arguments` of :class:`Switchgear` but `url` and
        `token`. It needs no closing; once it is closed it follows no more."""
        client = Switchgear(None, **{"state_dir": None, "time": self.time, **arguments})
        with self._lock:
            self._clients.add(client)
            self._tell(client)
        return client

    def engage(
        self,
        switch: str,
        *,
        reason: str = "engaged in a test",
        expires_in: timedelta | float = DAY,
        on_expiry: OnExpiry | None = None,
    ) -> None:
        """Stop `switch`, or give it another reason and expiry (in seconds, if it is a number). At
        its expiry a segment holds and the smaller ones ramp, unless `on_expiry` says otherwise."""
        if not isinstance(expires_in, timedelta):
            expires_in = timedelta(seconds=expires_in)
        row = self._row(switch)
        row["state"], row["allow_percent"], row["reason"] = "engaged", 0, reason
        row["expires_at"] = self._moment(expires_in)
        row["on_expiry"] = on_expiry or _usual(row["scope"])
        self._publish(row)

    def ramp(self, switch: str, percent: float) -> None:
        """Let `percent` of the calls through, above 0 and below 100, with at most two decimals. The
        same targeting keys stay in as it grows."""
        exact = Decimal(str(percent))
        if not (exact.is_finite() and 0 < exact < 100 and exact * 100 % 1 == 0):
            raise ValueError(f"{percent} is not between 0 and 100 with at most two decimals")
        row = self._row(switch)
        row["state"], row["allow_percent"] = "ramping", percent
        self._publish(row)

    def release(self, switch: str) -> None:
        """Let all calls through; a released switch stays as it is."""
        with self._lock:
            if self._rows.pop(switch_id(switch), None) is not None:
                self._tell_all()

    @property
    def version(self) -> int:
        """Of the snapshot in force; it grows by one with each change."""
        return self._version

    def _row(self, switch: str) -> dict[str, Any]:
        """A copy of what is known of this switch, or the beginning of an episode of it."""
        found = switch_id(switch)
        if found in self._rows:
            return dict(self._rows[found])
        scope, _, key = found.partition(":")
        return {
            "id": found,
            "scope": scope,
            "key": key,
            # The same in each run, so that a targeting key is in or out for good.
            "salt": f"{found} in a test",
            "reason": "ramping in a test",
            "engaged_at": self._moment(timedelta()),
            "expires_at": self._moment(DAY),
            "on_expiry": _usual(scope),
        }

    def _publish(self, row: dict[str, Any]) -> None:
        with self._lock:
            self._rows[row["id"]] = row
            self._tell_all()

    def _tell_all(self) -> None:
        self._version += 1
        for client in list(self._clients):
            self._tell(client)

    def _tell(self, client: Switchgear) -> None:
        if client._closed:
            return
        document = {
            "schema": snapshot.SCHEMA,
            "epoch": self._epoch,
            "version": self._version,
            "published_at": self._moment(timedelta()),
            "switches": [self._rows[switch] for switch in sorted(self._rows)],
        }
        client._memory.accept(snapshot.read(json.dumps(document).encode()))
        client._follower.confirmed()

    def _moment(self, later: timedelta) -> str:
        return (datetime.fromtimestamp(self.time.wall(), UTC) + later).isoformat()


def _usual(scope: str) -> OnExpiry:
    return "hold" if scope in ("global", "segment") else "ramp"
