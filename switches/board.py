"""Rows of the switchboard: filtering, search and order by urgency."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.db.models import (
    Case,
    F,
    IntegerField,
    Q,
    QuerySet,
    Value,
    When,
)

from controlplane.core.actors import Person
from controlplane.core.audit.models import AuditEntry
from controlplane.core.favorites import services as favorites
from controlplane.core.instances.check_series import CheckSeries, load_recent_series
from controlplane.core.instances.checked_keys import (
    CheckedKey,
    load_checked_keys,
    rank_keys,
    traffic_of,
)
from switches.favorite_kinds import KIND as FAVORITE
from switches.models import Episode, Switch, SwitchState
from switches.scopes import GLOBAL, GLOBAL_ID, SCOPES
from switches.services.undo import UNDO_WINDOW

from .ramps.timeline import summarize_live_ramps

PAGE_SIZE = 50
MAX_UNREGISTERED = 20
OVERDUE = "overdue"
SEARCHED_FIELDS = (
    *("id", "owner", "description"),
    *("open_episode__reason", "open_episode__engaged_by_name"),
)
CONDITIONS = (SwitchState.ENGAGED, SwitchState.RAMPING, OVERDUE, SwitchState.RELEASED)


@dataclass(frozen=True)
class SwitchboardFilters:
    """Filters of the switchboard; empty means all. `state` may also be `overdue`.

    `mine` selects the switches that the viewer, or a token of theirs, ever engaged, and those whose
    registration they changed; `favorites` are the ids of the viewer's favorites, if only these are
    selected.
    """

    state: str = ""
    scope: str = ""
    q: str = ""
    page: int = 1
    mine: bool = False
    favorites: Collection[str] | None = None

    @property
    def narrowed(self) -> bool:
        return bool(self.state or self.scope or self.q or self.mine or self.favorites is not None)


@dataclass(frozen=True)
class SwitchboardRow:
    """A switch as a row of the switchboard, with its live or pending ramp.

    Until `undo_until`, the viewer may undo the engage; None if they may not. `calls` are the calls
    of the last hour, `checks` says which services check the switch.
    """

    switch: Switch
    episode: Episode | None
    condition: str
    undo_until: datetime | None
    ramp: Mapping[str, Any] | None = None
    calls: CheckSeries | None = None
    checks: CheckedKey | None = None


@dataclass(frozen=True)
class Switchboard:
    """One page of the switchboard; `has_more` says that another one follows.

    The global switch and overdue switches come first, then those that expire soonest, then released
    ones, busiest first. `unregistered` are the busiest switches that services check but nobody
    registered or engaged.
    """

    rows: Sequence[SwitchboardRow]
    has_more: bool
    unregistered: Sequence[SwitchboardRow]


def read_filters(given: Any, user: Person) -> SwitchboardFilters:
    state, scope, page = given.get("state", ""), given.get("scope", ""), given.get("page", "")
    return SwitchboardFilters(
        state=state if state in CONDITIONS else "",
        scope=scope if scope in SCOPES else "",
        q=given.get("q", "").replace("\x00", "").strip()[:200],
        page=int(page) if page.isascii() and page.isdigit() and 0 < int(page) < 10_000 else 1,
        mine=given.get(favorites.FILTER, "") == "1",
        favorites=favorites.read_filter(given, user, FAVORITE),
    )


def load_switchboard(filters: SwitchboardFilters, user: Person, now: datetime) -> Switchboard:
    rows, has_more = _find_rows(filters, user, now)
    unregistered = _find_unregistered(filters, now)
    ids = [row.switch.pk for row in (*rows, *unregistered)]
    calls, checks = load_recent_series(ids, now), load_checked_keys(ids, now)

    def add_traffic(row: SwitchboardRow) -> SwitchboardRow:
        return replace(row, calls=calls[row.switch.pk], checks=checks[row.switch.pk])

    checked = [row for row in unregistered if checks[row.switch.pk].is_checked]
    return Switchboard(
        rows=[*map(add_traffic, rows)],
        has_more=has_more,
        unregistered=[*map(add_traffic, checked[:MAX_UNREGISTERED])],
    )


def _find_rows(
    filters: SwitchboardFilters, user: Person, now: datetime
) -> tuple[list[SwitchboardRow], bool]:
    start = (filters.page - 1) * PAGE_SIZE
    urgency = Case(
        When(scope=GLOBAL.name, open_episode__isnull=False, then=Value(0)),
        When(open_episode__overdue_at__isnull=False, then=Value(1)),
        When(open_episode__isnull=False, then=Value(2)),
        default=Value(3),
        output_field=IntegerField(),
    )
    soonest = F("open_episode__expires_at").asc(nulls_last=True)
    traffic = Case(When(open_episode__isnull=True, then=traffic_of("id", now)))
    switches = _filter_switches(filters, user).order_by(
        urgency, soonest, traffic.desc(nulls_last=True), "id"
    )
    found = list(switches[start : start + PAGE_SIZE + 1])
    shown = found[:PAGE_SIZE]
    ramps = summarize_live_ramps([switch.pk for switch in shown if switch.episode])
    rows = [board_row(switch, user, now, ramps.get(switch.pk)) for switch in shown]
    return rows, len(found) > PAGE_SIZE


def _find_unregistered(filters: SwitchboardFilters, now: datetime) -> list[SwitchboardRow]:
    """Return rows of checked switches that nobody registered; twice as many as are shown at most.

    Only on the first page, and none if a state other than released is selected.
    """
    if filters.mine or filters.page > 1 or filters.state not in ("", SwitchState.RELEASED):
        return []
    keys = rank_keys(now, filters.q).exclude(switch=GLOBAL_ID)
    if filters.scope:
        keys = keys.filter(switch__startswith=f"{filters.scope}:")
    if filters.favorites is not None:
        keys = keys.filter(switch__in=filters.favorites)
    keys = keys.exclude(switch__in=Switch.objects.values("pk"))
    ids = keys.values_list("switch", flat=True)[: 2 * MAX_UNREGISTERED]
    return [SwitchboardRow(make_unregistered(pk), None, SwitchState.RELEASED, None) for pk in ids]


def make_unregistered(switch_id: str) -> Switch:
    """Return an unsaved switch without an episode."""
    scope, _, key = switch_id.partition(":")
    return Switch(id=switch_id, scope=scope, key=key)


def board_row(
    switch: Switch, user: Person, now: datetime, ramp: Mapping[str, Any] | None = None
) -> SwitchboardRow:
    episode = switch.episode
    state = episode.state if episode else SwitchState.RELEASED
    return SwitchboardRow(
        switch=switch,
        episode=episode,
        condition=OVERDUE if episode and episode.overdue else state.value,
        undo_until=undo_until(switch, episode, user, now),
        ramp=ramp,
    )


def undo_until(
    switch: Switch, episode: Episode | None, user: Person, now: datetime
) -> datetime | None:
    """Return the time until which this person can undo their own engage, or None."""
    if episode is None or episode.engaged_by_type != "user" or not user.may_operate:
        return None
    mine = episode.engaged_by_name == user.username
    until = episode.engaged_at + UNDO_WINDOW
    untouched = switch.version == episode.engaged_version
    return until if mine and untouched and until > now + timedelta(seconds=1) else None


def _filter_switches(filters: SwitchboardFilters, user: Person) -> QuerySet[Switch]:
    switches = Switch.objects.with_open_episode()
    if filters.state == OVERDUE:
        switches = switches.overdue()
    elif filters.state:
        switches = switches.in_state(filters.state)
    if filters.scope:
        switches = switches.filter(scope=filters.scope)
    if filters.mine:
        engaged = Episode.objects.filter(engaged_by=user.pk).values("switch_id")
        changed = AuditEntry.objects.filter(
            action="registration.changed",
            actor_type__in=["user", "slack"],
            actor_name=user.username,
        ).values("target")
        switches = switches.filter(Q(pk__in=engaged) | Q(pk__in=changed))
    if filters.favorites is not None:
        switches = switches.filter(pk__in=filters.favorites)
    if filters.q:
        conditions = {f"{field}__icontains": filters.q for field in SEARCHED_FIELDS}
        switches = switches.filter(Q(**conditions, _connector=Q.OR))
    return switches
