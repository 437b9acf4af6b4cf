"""Facts that the emergency page shows: installation, engaged switches, and orders."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from uuid import UUID

from controlplane.core import durations
from controlplane.dataplane.memory.order_set import OrderSet
from controlplane.dataplane.state import State
from switches.emergency.orders import Order
from switches.snapshot import SnapshotEntry

from .markup import Markup, fill


@dataclass(frozen=True)
class Installation:
    """The installation that a data plane belongs to; `console_url` is "" if unknown."""

    environment: str = ""
    console_url: str = ""
    zone: tzinfo = UTC

    @property
    def is_production(self) -> bool:
        return self.environment.lower() == "production"


@dataclass(frozen=True)
class PageFacts:
    """The state of a data plane at `now`.

    `entries` are the engaged and ramping switches, the latest first. `age_seconds` is the time
    since the database confirmed the served data; None if nothing is served yet. `holders` returns
    the names of the data planes that hold an order, of `planes` in all; `count_applied` how many
    instances apply it, and how many this plane has seen. On a relay (`is_relay`),
    `has_lost_upstream` says that it gets nothing new; `may_withdraw` says which orders can be
    withdrawn here.
    """

    installation: Installation
    plane: str
    now: datetime
    entries: Sequence[SnapshotEntry]
    orders: OrderSet
    known: frozenset[str]
    database_reachable: bool
    database_read_only: bool
    age_seconds: float | None
    planes: int
    holders: Callable[[UUID], Collection[str]]
    count_applied: Callable[[UUID], tuple[int, int]]
    is_relay: bool
    has_lost_upstream: bool
    may_withdraw: Callable[[Order], bool]

    @property
    def is_database_writable(self) -> bool:
        return self.database_reachable and not self.database_read_only

    def find_entry(self, switch: str) -> SnapshotEntry | None:
        return next((entry for entry in self.entries if entry.id == switch), None)

    def list_orders(self, switch: str) -> list[Order]:
        """Return the open orders of a switch, the earliest first."""
        return [order for order in self.orders.open.values() if order.switch == switch]

    def describe_time(self, at: datetime, *, seconds: bool = False) -> Markup:
        """Return a time in the installation's zone, with the day unless that is today."""
        local = at.astimezone(self.installation.zone)
        today = self.now.astimezone(self.installation.zone).date()
        day = "" if local.date() == today else f"{local:%-d %b} "
        text = f"{day}{local:%H:%M:%S %Z}" if seconds else f"{day}{local:%H:%M %Z}"
        return fill(
            '<time datetime="{iso}">{text}</time>',
            iso=at.astimezone(UTC).isoformat(timespec="seconds"),
            text=text,
        )

    def describe_age(self, at: datetime) -> str:
        age = max(self.now - at, timedelta(0))  # The clocks of data planes may differ.
        return "just now" if age < timedelta(seconds=1) else f"{durations.format_readable(age)} ago"


def read_facts(
    state: State,
    installation: Installation,
    plane: str,
    planes: int,
    holders: Callable[[UUID], Collection[str]],
    count_applied: Callable[[UUID], tuple[int, int]],
    *,
    is_relay: bool,
    may_withdraw: Callable[[Order], bool],
) -> PageFacts:
    copy = state.copy
    entries = (
        [order.entry for order in state.orders.by_switch.values()]
        if copy is None
        else list(copy.entries.values())
    )
    entries.sort(key=lambda entry: (entry.engaged_at, entry.id), reverse=True)
    return PageFacts(
        installation=installation,
        plane=plane,
        now=state.wall(),
        entries=entries,
        orders=state.orders,
        known=state.known | state.checked,
        database_reachable=state.database_reachable,
        database_read_only=state.database_read_only,
        age_seconds=None if copy is None else state.age_seconds(),
        planes=planes,
        holders=holders,
        count_applied=count_applied,
        is_relay=is_relay,
        has_lost_upstream=state.upstream is not None,
        may_withdraw=may_withdraw,
    )
