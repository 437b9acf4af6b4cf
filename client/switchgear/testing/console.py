"""A console in memory, which its clients follow at once."""

import json
import threading
import uuid
import weakref
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Literal

from switchgear.client import Switchgear
from switchgear.clock import SystemTime, Time
from switchgear.evaluation import snapshot
from switchgear.evaluation.scopes import SCOPES
from switchgear.evaluation.snapshot import switch_id
from switchgear.policies import documents
from switchgear.policies.dependency_names import caller_of
from switchgear.policies.documents import Mode
from switchgear.testing.clock import FakeClock

OnExpiry = Literal["hold", "ramp", "release"]

DAY = timedelta(days=1)


class Console:
    """Engages, ramps and releases, as far as its clients can see: whoever made a change finds it in
    force when the method returns. `time` is that of the console and of its clients, such as a
    :class:`FakeClock`; the machine's by default.

    Nothing happens by itself but what clients do: an engagement whose `on_expiry` is `release` ends
    for them five seconds after its expiry, every other one goes on until this console is told. What
    is forced on a breaker ends at its expiry.
    """

    def __init__(self, time: Time | None = None) -> None:
        self.time: Time = time or SystemTime()
        self._epoch = str(uuid.uuid4())
        self._version = 0
        self._rows: dict[str, dict[str, Any]] = {}
        self._policies: dict[str, dict[str, Any]] = {}
        self._config_version = 0
        self._clients: weakref.WeakSet[Switchgear] = weakref.WeakSet()
        self._lock = threading.Lock()
        if isinstance(self.time, FakeClock):
            self.time.watch(self)

    def client(self, **arguments: Any) -> Switchgear:
        """A client of this console, by the `arguments` of :class:`Switchgear` but `url` and
        `token`. It needs no closing; once it is closed it follows no more."""
        client = Switchgear(None, **{"state_dir": None, "time": self.time, **arguments})
        client._memory.clock.trust_local()
        with self._lock:
            self._clients.add(client)
            self._tell(client)
            self._tell_policies(client)
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
        row["on_expiry"] = on_expiry or SCOPES[row["scope"]].default_on_expiry
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

    def configure(self, dependency: str, policy: Mapping[str, Any] | None) -> None:
        """What the console says of `core->oracle`, as its document has it: `timeout_ms`, `breaker`,
        `retry`, `bulkhead` and so on; None for nothing. What is forced stays. Raises
        :class:`ValueError` for what can't be."""
        before = self._policies.get(dependency, {})
        self._say(dependency, {**(policy or {}), "override": before.get("override")})

    def force(
        self,
        dependency: str,
        mode: Mode,
        *,
        reason: str = "forced in a test",
        expires_in: timedelta | float = DAY,
    ) -> None:
        """Force the breakers of a dependency into a mode until it expires, or :meth:`unforce`."""
        self._override(dependency, mode, reason, expires_in)

    def unforce(self, dependency: str) -> None:
        """Its breakers begin anew, closed."""
        self._say(dependency, {**self._policies.get(dependency, {}), "override": None})

    def reset(self, dependency: str) -> None:
        """Let its breakers begin anew, closed, without forcing anything."""
        self._override(dependency, "reset", "reset in a test", DAY)

    def time_passed(self) -> None:
        """By the clock, which stands still else."""
        for client in list(self._clients):
            client._registry.expire_overrides()

    @property
    def version(self) -> int:
        """Of the snapshot in force; it grows by one with each change."""
        return self._version

    def _override(
        self, dependency: str, mode: str, reason: str, expires_in: timedelta | float
    ) -> None:
        if not isinstance(expires_in, timedelta):
            expires_in = timedelta(seconds=expires_in)
        override = {"mode": mode, "reason": reason, "expires_at": self._moment(expires_in)}
        version = self._config_version + 1
        before = self._policies.get(dependency, {})
        self._say(dependency, {**before, "override": {**override, "version": version}})

    def _say(self, dependency: str, policy: dict[str, Any]) -> None:
        if caller_of(dependency) is None:
            raise ValueError(f"{dependency!r:.200} is no caller->callee, such as core->oracle")
        with self._lock:
            policies = {**self._policies, dependency: policy}
            told = {"version": self._config_version + 1, "dependencies": {dependency: policy}}
            if complaints := documents.read(json.dumps(told).encode(), {}).problems:
                raise ValueError("; ".join(complaints))
            self._policies, self._config_version = policies, self._config_version + 1
            for client in list(self._clients):
                self._tell_policies(client)

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
            "on_expiry": SCOPES[scope].default_on_expiry,
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
        client._follower.record_confirmation()

    def _tell_policies(self, client: Switchgear) -> None:
        """Those of each service are a document of its own."""
        of_caller: dict[str, dict[str, Any]] = {}
        for name, policy in self._policies.items():
            of_caller.setdefault(caller_of(name) or "", {})[name] = policy
        for caller, policies in of_caller.items():
            if not client._closed:
                told = {"version": self._config_version, "dependencies": policies}
                client._registry.accept(caller, self._epoch, json.dumps(told).encode())

    def _moment(self, later: timedelta) -> str:
        return (datetime.fromtimestamp(self.time.wall(), UTC) + later).isoformat()
