"""A console in memory for tests, whose clients get changes without delay."""

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
from switchgear.evaluation.snapshot import resolve_switch_id
from switchgear.policies import documents
from switchgear.policies.dependency_names import caller_of
from switchgear.policies.documents import Mode
from switchgear.testing.clock import FakeClock

OnExpiry = Literal["hold", "ramp", "release"]

DAY = timedelta(days=1)


class Console:
    """A console in memory, for tests: it engages, ramps and releases switches for its clients.

        console = Console()
        gear = console.client()
        console.engage("feature:chat")
        assert not gear.allowed(feature="chat")

    A change is in force when its method returns. `time` is the clock of the console and of its
    clients, such as a :class:`FakeClock`; the system clock by default. At an expiry the clients
    act, not this console: an engagement whose `on_expiry` is `release` ends five seconds after its
    expiry, any other continues until it is released in this console. A mode forced on a breaker
    ends at its expiry.
    """

    def __init__(self, time: Time | None = None) -> None:
        self.time: Time = time or SystemTime()
        self._epoch = str(uuid.uuid4())
        self._version = 0
        self._rows: dict[str, dict[str, Any]] = {}
        self._closed_orders: list[str] = []
        self._policies: dict[str, dict[str, Any]] = {}
        self._config_version = 0
        self._clients: weakref.WeakSet[Switchgear] = weakref.WeakSet()
        self._lock = threading.Lock()
        if isinstance(self.time, FakeClock):
            self.time.watch(self)

    def client(self, **arguments: Any) -> Switchgear:
        """Return a new client that follows this console.

        `arguments` are those of :class:`Switchgear` except `url` and `token`. The client need not
        be closed; a closed client receives no more changes.
        """
        client = Switchgear(None, **{"state_dir": None, "time": self.time, **arguments})
        client._store.clock.trust_local()
        with self._lock:
            self._clients.add(client)
            self._update_client(client)
            self._update_policies(client)
        return client

    def engage(
        self,
        switch: str,
        *,
        reason: str = "engaged in a test",
        expires_in: timedelta | float = DAY,
        on_expiry: OnExpiry | None = None,
    ) -> None:
        """Engage `switch`; if it is engaged already, change its reason and expiry.

        `expires_in` is a duration, or a number of seconds. By default, `on_expiry` is `hold` for
        `global:all` and segments, `ramp` for features and experiments.
        """
        row = self._row(switch)
        row["state"], row["allow_percent"], row["reason"] = "engaged", 0, reason
        row["expires_at"] = self._moment(expires_in)
        row["on_expiry"] = on_expiry or SCOPES[row["scope"]].default_on_expiry
        self._publish(row)

    def ramp(self, switch: str, percent: float) -> None:
        """Make `switch` ramping: allow `percent` of its calls.

        `percent` is above 0 and below 100, with at most two decimals; else raise
        :class:`ValueError`. An allowed targeting key stays allowed as the share grows.
        """
        exact = Decimal(str(percent))
        if not (exact.is_finite() and 0 < exact < 100 and exact * 100 % 1 == 0):
            raise ValueError(f"{percent} is not between 0 and 100 with at most two decimals")
        row = self._row(switch)
        row["state"], row["allow_percent"] = "ramping", percent
        self._publish(row)

    def release(self, switch: str) -> None:
        """Release `switch`, so that it blocks no calls. Do nothing if it is released already."""
        with self._lock:
            row = self._rows.pop(resolve_switch_id(switch), None)
            if row is not None:
                self._take_over_order(row)
                self._update_clients()

    def order(self, switch: str, *, reason: str = "ordered in a test") -> str:
        """Engage `switch` by an emergency order, as while PostgreSQL is down; return its id.

        The version stays the same. The order replaces a ramp or an engagement of the switch, and
        ends when the switch is engaged, ramped or released.
        """
        row = self._row(switch)
        order = str(uuid.uuid4())
        row |= {"state": "engaged", "reason": reason, "on_expiry": "hold", "emergency": order}
        with self._lock:
            self._rows[row["id"]] = row
            self._update_all()
        return order

    def configure(self, dependency: str, policy: Mapping[str, Any] | None) -> None:
        """Set the console's policy of a dependency such as `core->oracle`; None removes it.

        `policy` is as in the console's document: `timeout_ms`, `breaker`, `retry`, `bulkhead` and
        so on. A forced mode stays. Raise :class:`ValueError` for an invalid policy.
        """
        before = self._policies.get(dependency, {})
        self._set_policy(dependency, {**(policy or {}), "override": before.get("override")})

    def force(
        self,
        dependency: str,
        mode: Mode,
        *,
        reason: str = "forced in a test",
        expires_in: timedelta | float = DAY,
    ) -> None:
        """Force the breakers of a dependency into `mode`, until the expiry or :meth:`unforce`."""
        self._override(dependency, mode, reason, expires_in)

    def unforce(self, dependency: str) -> None:
        """End the forced mode of a dependency's breakers and close them."""
        self._set_policy(dependency, {**self._policies.get(dependency, {}), "override": None})

    def reset(self, dependency: str) -> None:
        """Close the breakers of a dependency and empty their windows."""
        self._override(dependency, "reset", "reset in a test", DAY)

    def time_passed(self) -> None:
        """End forced modes whose expiry has passed; called when a fake clock is advanced."""
        for client in list(self._clients):
            client._registry.expire_overrides()

    @property
    def version(self) -> int:
        """The version of the snapshot in force; it grows by one with each change."""
        return self._version

    def _override(
        self, dependency: str, mode: str, reason: str, expires_in: timedelta | float
    ) -> None:
        override = {"mode": mode, "reason": reason, "expires_at": self._moment(expires_in)}
        version = self._config_version + 1
        before = self._policies.get(dependency, {})
        self._set_policy(dependency, {**before, "override": {**override, "version": version}})

    def _set_policy(self, dependency: str, policy: dict[str, Any]) -> None:
        if caller_of(dependency) is None:
            raise ValueError(
                f"{dependency!r:.200} is not of the form caller->callee, such as core->oracle"
            )
        with self._lock:
            policies = {**self._policies, dependency: policy}
            document = {"version": self._config_version + 1, "dependencies": {dependency: policy}}
            if problems := documents.parse_document(json.dumps(document).encode(), {}).problems:
                raise ValueError("; ".join(problems))
            self._policies, self._config_version = policies, self._config_version + 1
            for client in list(self._clients):
                self._update_policies(client)

    def _row(self, switch: str) -> dict[str, Any]:
        """Return a copy of the switch's entry in the snapshot's document, or a new entry to add."""
        found = resolve_switch_id(switch)
        if found in self._rows:
            return dict(self._rows[found])
        scope, _, key = found.partition(":")
        return {
            "id": found,
            "scope": scope,
            "key": key,
            # Constant, so that a targeting key is in or out in every run.
            "salt": f"{found} in a test",
            "reason": "ramping in a test",
            "engaged_at": self._moment(timedelta()),
            "expires_at": self._moment(DAY),
            "on_expiry": SCOPES[scope].default_on_expiry,
        }

    def _publish(self, row: dict[str, Any]) -> None:
        with self._lock:
            self._take_over_order(row)
            self._rows[row["id"]] = row
            self._update_clients()

    def _take_over_order(self, row: dict[str, Any]) -> None:
        """Close the emergency order of a switch that is engaged, ramped or released."""
        order = row.pop("emergency", None)
        if order is not None:
            self._closed_orders.append(order)

    def _update_clients(self) -> None:
        self._version += 1
        self._update_all()

    def _update_all(self) -> None:
        for client in list(self._clients):
            self._update_client(client)

    def _update_client(self, client: Switchgear) -> None:
        if client._closed:
            return
        orders = [row["emergency"] for row in self._rows.values() if "emergency" in row]
        document = {
            "schema": snapshot.SCHEMA,
            "epoch": self._epoch,
            "version": self._version,
            "published_at": self._moment(timedelta()),
            "switches": [self._rows[switch] for switch in sorted(self._rows)],
            "emergency": {"open": orders, "closed": self._closed_orders},
        }
        client._store.accept(snapshot.parse_snapshot(json.dumps(document).encode()))
        client._follower.record_confirmation()

    def _update_policies(self, client: Switchgear) -> None:
        """Send the policies of all dependencies to a client, one document per calling service."""
        of_caller: dict[str, dict[str, Any]] = {}
        for name, policy in self._policies.items():
            of_caller.setdefault(caller_of(name) or "", {})[name] = policy
        for caller, policies in of_caller.items():
            if not client._closed:
                document = {"version": self._config_version, "dependencies": policies}
                client._registry.accept(caller, self._epoch, json.dumps(document).encode())

    def _moment(self, later: timedelta | float) -> str:
        if not isinstance(later, timedelta):
            later = timedelta(seconds=later)
        return (datetime.fromtimestamp(self.time.wall(), UTC) + later).isoformat()
