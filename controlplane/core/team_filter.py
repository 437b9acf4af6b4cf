"""The filter of lists by owning teams: the query parameter `team`.

It is `mine`, `unowned` or a team's slug; a team selects also what the teams below it own. Templates
include `core/_team_filter.html` in the form of filters and `core/_team_filter_note.html` above the
list, with the variables of :func:`build_filter_context`.
"""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from django.db.models import QuerySet
from django.http import HttpRequest

from controlplane.core.actors import Actor
from controlplane.core.authority import MINE, UNOWNED, TeamFilter, Teams, read_teams
from controlplane.core.errors import InvalidInput
from controlplane.core.page_registry import IsOwned

Item = TypeVar("Item")
Rows = TypeVar("Rows", bound=QuerySet[Any, Any])

PARAMETER = "team"
TEAM_HELP = "Only what a team owns: its slug, `mine`, or `unowned` for what no team owns."
MAX_WANTED_LENGTH = 60
ALL_TEAMS = TeamFilter("", "All teams", lambda _resource: True)


def read_team_filter(request: HttpRequest, teams: Teams | None = None) -> TeamFilter:
    """Return the filter in a request's address: of everything for none, or for an unknown team.

    The note above the list names an unknown team.
    `teams` saves a query if they were read already.
    """
    teams = read_teams() if teams is None else teams
    wanted = request.GET.get(PARAMETER, "").replace("\x00", "").strip()[:MAX_WANTED_LENGTH]
    return teams.filter_for(request.user.pk, wanted)


def parse_team_filter(actor: Actor, wanted: str) -> TeamFilter:
    """Return the filter of an API list that an actor wants.

    For a team's token, `mine` is what the team owns. Raises :class:`InvalidInput` for an unknown
    team, and for `mine` without one.
    """
    if wanted == MINE and actor.team:
        wanted = actor.team
    found = read_teams().filter_for(actor.user_id, wanted)
    # Without teams, everything is unowned.
    if found.is_all and wanted not in ("", UNOWNED):
        detail = "You are in no team." if wanted == MINE else f"There is no team {wanted!r}."
        raise InvalidInput({PARAMETER: [detail]})
    return found


def split_by_team(
    team_filter: TeamFilter, items: Iterable[Item], resource_of: Callable[[Item], str]
) -> tuple[list[Item], int]:
    """Return the items that the filter selects, and the number of items that it hides."""
    items = list(items)
    if team_filter.is_all:
        return items, 0
    selected = [one for one in items if team_filter.includes(resource_of(one))]
    return selected, len(items) - len(selected)


def keep_owned(
    rows: Rows, field: str, is_owned: IsOwned, resource_of: Callable[[str], str] = str
) -> Rows:
    """Return the rows whose `field` names an owned resource, or all of them without `is_owned`.

    `resource_of` makes the resource of the field's value.
    """
    if is_owned is None:
        return rows
    values = rows.order_by().values_list(field, flat=True).distinct()
    owned = [value for value in values if is_owned(resource_of(value))]
    return rows.filter(**{f"{field}__in": owned})


def build_filter_context(team_filter: TeamFilter, hidden: int) -> dict[str, Any]:
    """Return the variables of both templates; `hidden` counts items that the filter hides."""
    return {"team_filter": team_filter, "team_hidden": hidden}
