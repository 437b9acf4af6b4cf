"""The published state at every version, rebuilt from the audit trail. Pure."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

RELEASED = "released"


@dataclass(frozen=True)
class Entry:
    """A switch that is not released, as it is published."""

    allow_percent: float
    salt: str
    reason: str
    engaged_at: str
    expires_at: str | None
    on_expiry: str


State = Mapping[str, Entry]
"""Entries by switch id; a switch that is missing is released."""


@dataclass(frozen=True)
class Row:
    """A row of the audit trail."""

    id: int
    action: str
    target: str
    request_id: str
    after: Mapping[str, Any] | None

    @property
    def version(self) -> int | None:
        """The version of its switch after it; None for a row about something else."""
        return self.after.get("version") if self.after and "state" in self.after else None


class Truth:
    """The published state at each version from 0 to `newest`.

    `problems` lists what is wrong with the trail: versions that are missing, and rows that
    contradict each other about one version.
    """

    def __init__(self, epoch: str, rows: Sequence[Row], salts: Mapping[int, str]) -> None:
        self.epoch = epoch
        self.problems: list[str] = []
        changes = self._changes(rows, salts)
        self.newest = max(changes, default=0)
        self._states: list[State] = [{}]
        for version in range(1, self.newest + 1):
            if version not in changes:
                self.problems.append(f"version {version} is missing in the audit trail")
                self._states.append(self._states[-1])
                continue
            switch, entry = changes[version]
            state = {**self._states[-1]}
            state.pop(switch, None)
            if entry is not None:
                state[switch] = entry
            self._states.append(state)

    def get_state(self, version: int) -> State | None:
        """Return the state at a version; None if it was never committed."""
        return self._states[version] if 0 <= version <= self.newest else None

    def _changes(
        self, rows: Sequence[Row], salts: Mapping[int, str]
    ) -> dict[int, tuple[str, Entry | None]]:
        changes: dict[int, tuple[str, Entry | None]] = {}
        for row in rows:
            if row.version is None or row.after is None:
                continue
            change = (row.target, from_picture(row.after, salts))
            if changes.setdefault(row.version, change) != change:
                self.problems.append(
                    f"row {row.id} says {change} of version {row.version}, an earlier row "
                    f"{changes[row.version]}"
                )
        return changes


def from_picture(after: Mapping[str, Any], salts: Mapping[int, str]) -> Entry | None:
    """Return the entry that an audit row's `after` describes; None if the switch is released."""
    if after["state"] == RELEASED:
        return None
    return Entry(
        allow_percent=float(after["allow_percent"]),
        salt=salts[after["episode"]],
        reason=after["reason"],
        engaged_at=after["engaged_at"],
        expires_at=after["expires_at"],
        on_expiry=after["on_expiry"],
    )


def from_snapshot(switches: Iterable[Mapping[str, Any]]) -> State:
    """Return the state in a snapshot."""
    return {
        one["id"]: Entry(
            allow_percent=float(one["allow_percent"]),
            salt=one["salt"],
            reason=one["reason"],
            engaged_at=one["engaged_at"],
            expires_at=one["expires_at"],
            on_expiry=one["on_expiry"],
        )
        for one in switches
    }


def read_row(id_: int, action: str, target: str, request_id: str, after: str) -> Row:
    """Return a row of the trail, whose `after` is canonical JSON text."""
    found = json.loads(after)
    return Row(id_, action, target, request_id, found if isinstance(found, dict) else None)
