"""Attention items for steps, routes and contacts of teams that reach nobody.

One more item is for people on call without an emergency code.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet

from controlplane.accounts.emergency_codes import services as emergency_codes
from controlplane.accounts.models.emergency_codes import EmergencyCode
from controlplane.accounts.models.teams import Ownership, Team
from controlplane.core.message_templates import SEVERITIES
from controlplane.core.page_registry import (
    LINK,
    AttentionAction,
    AttentionItem,
    attention_rows,
    attention_source,
)
from controlplane.core.roles import Power
from controlplane.notify.models.targets import EscalationStep, OnCallMember, Route, Target
from controlplane.notify.models.teams import TeamContact

from . import directory, reach
from .reach import Rung
from .team_contacts import CHANNEL, ON_CALL

PAGE = "/targets/"
ACTIONS = (AttentionAction("Set up notifications", PAGE, Power.ADMINISTER, "target", LINK),)
SECURITY_PAGE = AttentionAction(
    "Open your security page",
    "/preferences/security/#emergency-code",
    emergency_codes.SCOPE,
    "token",
    LINK,
)
TEAMS_PAGE = "/teams/"
MAX_ITEMS = 300
MAX_NAMED = 10
NO_RECIPIENTS = (
    "No notifications configured",
    "No route or escalation step reaches anyone: messages are shown only in this console. Set "
    "up Slack, e-mail or a webhook, then choose who is on call.",
)
NO_ROUTE_BUT_TEAMS = (
    "No route reaches anyone",
    "Only escalation steps and the channels of teams notify people. Changes of what no team owns "
    "are shown only in this console.",
)
NO_ROUTE_RECIPIENTS = (
    "No route reaches anyone",
    "Only escalation steps notify people. Changes such as an engaged switch are shown only in "
    "this console.",
)


@attention_source(80)
def list_unreachable(now: datetime) -> list[AttentionItem]:
    """Return items for the steps, routes and contacts of teams that reach nobody.

    If none of them reaches anybody, return a single item for all.
    """
    steps = reach.steps_of(SEVERITIES)
    routes = list(Route.objects.select_related("target__user").order_by("id"))
    contacts = list(TeamContact.objects.select_related("team", "target__user").order_by("id"))
    known = directory.read_directory(
        [
            *(one.target for one in steps),
            *(one.target for one in routes),
            *(one.target for one in contacts),
        ]
    )
    ladders = reach.group_rungs(steps, SEVERITIES, known, now)
    reached = {route: reach.reach_from(route.target, known, now) for route in routes}
    reaches = {contact: reach.reach_from(contact.target, known, now) for contact in contacts}
    in_teams = any(found.to for found in reaches.values())
    has_team_channel = any(one.kind == CHANNEL and found.to for one, found in reaches.items())
    called = any(rung.reach.to for ladder in ladders.values() for rung in ladder)
    is_routed = any(found.to for found in reached.values())
    if not (called or is_routed or in_teams):
        return [_no_recipients(*NO_RECIPIENTS, reached, now)]
    if not is_routed:
        words = NO_ROUTE_BUT_TEAMS if has_team_channel else NO_ROUTE_RECIPIENTS
        silent = [_no_recipients(*words, reached, now)]
    else:
        unreached = [(route, found) for route, found in reached.items() if not found.to]
        silent = [
            AttentionItem(
                kind="route",
                severity="warning",
                title=f"The route for {route.event} to {route.target.name} reaches no one",
                detail=f"{route.target.name}: {found.why}.",
                path=PAGE,
                actions=ACTIONS,
                since=route.created_at,
            )
            for route, found in unreached[:MAX_ITEMS]
        ]
    missed = [(one, found) for one, found in reaches.items() if not found.to]
    silent += [_silent_contact(one, found.why) for one, found in missed[:MAX_ITEMS]]
    return _silent_steps(ladders, now) + silent


def _find_without_code(_now: datetime) -> QuerySet[Target, Any]:
    """Return the targets of people on call who may have an emergency code and have none."""
    codes = EmergencyCode.objects.current().filter(user=OuterRef("user"))
    members = OnCallMember.objects.filter(person=OuterRef("pk"))
    steps = EscalationStep.objects.filter(target=OuterRef("pk"))
    found = Target.objects.filter(
        Exists(members) | Exists(steps),
        ~Exists(codes),
        user__is_active=True,
        user__role__in=emergency_codes.ROLES,
    )
    return found.order_by("user__username", "id").values("user__username", "created_at")


@attention_rows(85, _find_without_code)
def list_without_code(_now: datetime, rows: Sequence[Mapping[str, Any]]) -> list[AttentionItem]:
    """Return an item that names the people on call who have no emergency code."""
    names = list(dict.fromkeys(row["user__username"] for row in rows))
    if not names:
        return []
    who = names[0] if len(names) == 1 else f"{len(names)} people"
    more = len(names) - MAX_NAMED
    listed = ", ".join(names[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")
    return [
        AttentionItem(
            kind="emergency_code",
            severity="info",
            title=f"{who} on call without an emergency code",
            detail=f"Without one, they can't engage a switch while the console is down: {listed}."
            " Each creates a code on the security page.",
            path=PAGE,
            since=min(row["created_at"] for row in rows),
            actions=(SECURITY_PAGE,),
        )
    ]


def _find_teams(_now: datetime) -> QuerySet[Team, Any]:
    """Return all teams, each with its parent, whether it owns something, and is on call itself."""
    on_call = TeamContact.objects.filter(team=OuterRef("pk"), kind=TeamContact.Kind.ON_CALL)
    owned = Ownership.objects.filter(team=OuterRef("pk"))
    teams = Team.objects.annotate(owns=Exists(owned), is_covered=Exists(on_call))
    return teams.order_by("name").values(
        "pk", "name", "parent_id", "created_at", "owns", "is_covered"
    )


@attention_rows(87, _find_teams)
def list_without_on_call(_now: datetime, rows: Sequence[Mapping[str, Any]]) -> list[AttentionItem]:
    """Return an item that names the owning teams without on-call rotation, also above them."""
    teams = {row["pk"]: row for row in rows}
    silent = [row for row in rows if row["owns"] and not _is_covered(row, teams)]
    if not silent:
        return []
    names = [row["name"] for row in silent]
    who = f"{names[0]} has" if len(names) == 1 else f"{len(names)} teams have"
    more = len(names) - MAX_NAMED
    listed = ", ".join(names[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")
    return [
        AttentionItem(
            kind="team_on_call",
            severity="info",
            title=f"{who} nobody on call",
            detail="Requests and escalations about what these teams own reach no on-call person of"
            f" theirs: {listed}. Choose one on the page of each team, or of a team above it.",
            path=TEAMS_PAGE,
            since=min(row["created_at"] for row in silent),
        )
    ]


def _is_covered(row: Mapping[str, Any], teams: Mapping[int, Mapping[str, Any]]) -> bool:
    """Return True if the team, or one above it, has an on-call rotation."""
    seen: set[int] = set()
    above: Mapping[str, Any] | None = row
    while above is not None and above["pk"] not in seen:
        if above["is_covered"]:
            return True
        seen.add(above["pk"])
        above = teams.get(above["parent_id"])
    return False


def _silent_contact(contact: TeamContact, why: str) -> AttentionItem:
    team, name = contact.team, contact.target.name
    is_on_call = contact.kind == ON_CALL
    noun = "on-call rotation" if is_on_call else contact.kind
    return AttentionItem(
        kind="team_contact",
        severity="warning",
        title=f"The {noun} {name} of {team.name} reaches no one: {why}",
        detail="The teams above, routes and the steps of the severity are notified instead.",
        path=PAGE,
        actions=ACTIONS,
        since=max(team.created_at, contact.target.created_at),
        resource=f"team:{team.slug}",
    )


def _silent_steps(ladders: Mapping[str, list[Rung]], now: datetime) -> list[AttentionItem]:
    since = {
        severity: ladder[0].step.escalation.created_at
        for severity, ladder in ladders.items()
        if ladder
    }
    found = [
        _silent_severity(severity, ladder, since.get(severity, now))
        for severity, ladder in ladders.items()
        if not any(rung.reach.to for rung in ladder)
    ]
    missed: dict[int, list[tuple[str, Rung]]] = defaultdict(list)
    for severity, ladder in ladders.items():
        # The targets of a severity that reaches no one are part of its own item.
        if any(rung.reach.to for rung in ladder):
            for rung in ladder:
                if not rung.reach.to:
                    missed[rung.step.target_id].append((severity, rung))
    return found + [_silent_target(rungs) for rungs in missed.values()]


def _no_recipients(
    title: str, detail: str, routes: Iterable[Route], now: datetime
) -> AttentionItem:
    since = min((route.created_at for route in routes), default=now)
    return AttentionItem(
        kind="routes",
        severity="critical",
        title=title,
        detail=detail,
        path=PAGE,
        since=since,
        actions=ACTIONS,
    )


def _silent_severity(severity: str, ladder: list[Rung], since: datetime) -> AttentionItem:
    reasons = {rung.step.target.name: rung.reach.why for rung in ladder}
    missing = "; ".join(f"{name}: {why}" for name, why in reasons.items())
    return AttentionItem(
        kind="escalation",
        severity="critical" if severity == "critical" else "warning",
        title=f"No escalation step reaches anyone: {severity}",
        detail=f"Only routes notify. {missing}."
        if ladder
        else "It has no steps; only routes notify.",
        path=PAGE,
        actions=ACTIONS,
        since=since,
    )


def _silent_target(rungs: list[tuple[str, Rung]]) -> AttentionItem:
    target, why = rungs[0][1].step.target, rungs[0][1].reach.why
    steps = ", ".join(
        f"{severity} " + (f"after {rung.after}" if rung.after else "immediately")
        for severity, rung in rungs
    )
    return AttentionItem(
        kind="target",
        severity="warning",
        title=f"{target.name} reaches no one: {why}",
        detail=f"Used by {steps}. These steps are skipped until the target is set up.",
        path=PAGE,
        actions=ACTIONS,
        since=target.created_at,
    )
