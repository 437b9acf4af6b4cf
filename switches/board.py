"""Rows of the switchboard: filtering, search and order by urgency."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from heapq import nsmallest
from typing import Any

from django.db.models import (
    Case,
    F,
    IntegerField,
    Q,
    Value,
    When,
)

from controlplane.core.actors import Person
from controlplane.core.audit.models import AuditEntry
from controlplane.core.authority import TeamFilter
from controlplane.core.favorites.services import rank_favorites
from controlplane.core.instances.check_series import CheckSeries, load_recent_series
from controlplane.core.instances.checked_keys import (
    CheckedKey,
    find_keys,
    load_checked_keys,
    rank_keys,
)
from controlplane.core.search_words import split_words
from controlplane.core.team_filter import ALL_TEAMS, split_by_team
from switches.models import Episode, Switch, SwitchQuerySet, SwitchState
from switches.scopes import GLOBAL, GLOBAL_ID
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
    registration they changed. `favorites` are the viewer's favorites, which are listed first, and
    `only_favorites` selects them.
    """

    state: str = ""
    scope: str = ""
    q: str = ""
    page: int = 1
    mine: bool = False
    favorites: Collection[str] = ()
    only_favorites: bool = False
    team: TeamFilter = ALL_TEAMS

    @property
    def narrowed(self) -> bool:
        is_own = self.mine or self.only_favorites
        return bool(self.state or self.scope or self.q or is_own or self.team.wanted)


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
    ones, busiest first; of each group, the viewer's favorites come first. `unregistered` are the
    busiest switches that services check but nobody registered or engaged. `hidden` counts the
    switches of both kinds that only the filter by team leaves out.
    """

    rows: Sequence[SwitchboardRow]
    has_more: bool
    unregistered: Sequence[SwitchboardRow]
    hidden: int = 0


def load_switchboard(filters: SwitchboardFilters, user: Person, now: datetime) -> Switchboard:
    switches, hidden = _filter_switches(filters, user).split_by_team(filters.team)
    rows, has_more = _find_rows(switches, filters, user, now)
    unregistered, unregistered_hidden = _find_unregistered(filters, now)
    ids = [row.switch.pk for row in (*rows, *unregistered)]
    calls, checks = load_recent_series(ids, now), load_checked_keys(ids, now)

    def add_traffic(row: SwitchboardRow) -> SwitchboardRow:
        return replace(row, calls=calls[row.switch.pk], checks=checks[row.switch.pk])

    checked = [row for row in unregistered if checks[row.switch.pk].is_checked]
    return Switchboard(
        rows=[*map(add_traffic, rows)],
        has_more=has_more,
        unregistered=[*map(add_traffic, checked[:MAX_UNREGISTERED])],
        hidden=hidden + unregistered_hidden,
    )


def _find_rows(
    switches: SwitchQuerySet, filters: SwitchboardFilters, user: Person, now: datetime
) -> tuple[list[SwitchboardRow], bool]:
    start, most = (filters.page - 1) * PAGE_SIZE, PAGE_SIZE + 1
    stopped = switches.stopped()
    found: list[Switch] = []
    if filters.state != SwitchState.RELEASED:
        found = list(_order_by_urgency(stopped, filters.favorites)[start : start + most])
    if filters.state in ("", SwitchState.RELEASED) and len(found) < most:
        before = start + len(found) if found or not start else stopped.count()
        first = max(0, start - before)
        released = switches.in_state(SwitchState.RELEASED)
        found += _take_released(released, filters.favorites, now, first, most - len(found))
    shown = found[:PAGE_SIZE]
    ramps = summarize_live_ramps([switch.pk for switch in shown if switch.episode])
    rows = [board_row(switch, user, now, ramps.get(switch.pk)) for switch in shown]
    return rows, len(found) > PAGE_SIZE


def _order_by_urgency(stopped: SwitchQuerySet, starred: Collection[str]) -> SwitchQuerySet:
    urgency = Case(
        When(scope=GLOBAL.name, then=Value(0)),
        When(open_episode__overdue_at__isnull=False, then=Value(1)),
        default=Value(2),
        output_field=IntegerField(),
    )
    soonest = F("open_episode__expires_at").asc(nulls_last=True)
    return stopped.order_by(urgency, rank_favorites("pk", starred), soonest, "id")


def _take_released(
    released: SwitchQuerySet, starred: Collection[str], now: datetime, first: int, most: int
) -> list[Switch]:
    """Return at most `most` released switches from the place `first` on; favorites first."""
    calls = rank_keys(now)
    ids = nsmallest(
        first + most,
        released.order_by().values_list("pk", flat=True),
        key=lambda pk: (pk not in starred, -calls.get(pk, 0.0), pk),
    )[first:]
    found = released.in_bulk(ids)
    return [found[pk] for pk in ids if pk in found]


def _find_unregistered(
    filters: SwitchboardFilters, now: datetime
) -> tuple[list[SwitchboardRow], int]:
    """Return rows of checked switches that nobody registered; twice as many as are shown at most.

    Only on the first page, and none if a state other than released is selected. Also return the
    number of those that the filter by team hides.
    """
    if filters.mine or filters.state not in ("", SwitchState.RELEASED):
        return [], 0
    if filters.page > 1 and filters.team.is_all:
        return [], 0
    keys = [
        key
        for key in find_keys(filters.q, now)
        if key != GLOBAL_ID
        and key.startswith(f"{filters.scope}:" if filters.scope else "")
        and (not filters.only_favorites or key in filters.favorites)
    ]
    selected, _ = split_by_team(filters.team, keys, str)
    selected.sort(key=lambda key: key not in filters.favorites)
    hidden = set(keys).difference(selected)
    if hidden:
        hidden.difference_update(Switch.objects.filter(pk__in=hidden).values_list("pk", flat=True))
    most = 2 * MAX_UNREGISTERED if filters.page == 1 else 0
    ids = take_unregistered(selected, most)
    rows = [SwitchboardRow(make_unregistered(pk), None, SwitchState.RELEASED, None) for pk in ids]
    return rows, len(hidden)


def take_unregistered(keys: Sequence[str], most: int) -> list[str]:
    """Return the first `most` of these switches that were never registered or engaged.

    Most of the first keys are: they are looked up in parts of growing size.
    """
    found: list[str] = []
    size = 4 * most
    while keys and len(found) < most:
        part, keys = keys[:size], keys[size:]
        known = set(Switch.objects.filter(pk__in=part).values_list("pk", flat=True))
        found += [key for key in part if key not in known]
        size *= 4
    return found[:most]


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


def _filter_switches(filters: SwitchboardFilters, user: Person) -> SwitchQuerySet:
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
    if filters.only_favorites:
        switches = switches.filter(pk__in=filters.favorites)
    return switches.containing(split_words(filters.q), SEARCHED_FIELDS)
