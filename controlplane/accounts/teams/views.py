"""Pages of teams, and the forms to change them."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from django.core.paginator import Paginator
from django.db.models import Case, IntegerField, Q, Value, When
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse

from controlplane.accounts.models.teams import Membership, Team
from controlplane.accounts.requests import UserRequest
from controlplane.core import authority, owned_resources
from controlplane.core.actions import Action
from controlplane.core.actors import Actor
from controlplane.core.change_views import submitted_data
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict, InvalidInput, NotFound
from controlplane.core.http.confirmation import require_fresh
from controlplane.core.http.permissions import actor_of
from controlplane.core.page_responses import page_view, respond_done, show
from controlplane.core.roles import Power

from . import changes, queries, services
from .forms import (
    MEMBER_CHOICES,
    ChangeRequestForm,
    MemberForm,
    MembersForm,
    NewTeamForm,
    PatternsForm,
    TeamForm,
    split_words,
)
from .services import TeamChange

TEAMS_PER_PAGE = 100
MEMBERS_PER_PAGE = 50
UNOWNED_PER_PAGE = 100
OWNED_SHOWN = 50
MAX_SEARCH_LENGTH = 200


@page_view("GET")
def teams_page(request: UserRequest) -> HttpResponse:
    teams = Paginator(queries.list_teams(request.user.pk), TEAMS_PER_PAGE)
    unowned = owned_resources.list_unowned()
    context = {
        "now": db_now(),
        "page": teams.get_page(request.GET.get("page")),
        "unowned": queries.count_by_kind(unowned),
        "unowned_total": len(unowned),
        "pending": queries.list_pending(),
        "may_create": request.user.is_admin,
        "approvers": _list_approvers(request, "team:"),
    }
    return render(request, "core/teams.html", context)


@page_view("GET")
def team_page(request: UserRequest, slug: str) -> HttpResponse:
    team, actor = services.get_team(slug), actor_of(request)
    teams = authority.read_teams()
    owned = queries.list_owned(slug)
    shown = owned[:OWNED_SHOWN]
    paths = owned_resources.find_paths(shown)
    context = {
        "now": db_now(),
        "team": team,
        "above": list(teams.chain_of(f"team:{slug}"))[:0:-1],
        "below": team.children.order_by("name"),
        "patterns": queries.list_patterns(slug, owned),
        "owned": [(one, paths.get(one.name, "")) for one in shown],
        "owned_counts": queries.count_by_kind(owned),
        "owned_total": len(owned),
        "pending": queries.list_pending(slug),
        "edit": teams.decide(actor, Action.EDIT, f"team:{slug}"),
        **_search_members(team, request.GET),
    }
    return render(request, "core/team.html", context)


@page_view("GET")
def unowned_page(request: UserRequest) -> HttpResponse:
    """List the known resources that no team owns, all or those of `?kind=`."""
    unowned = owned_resources.list_unowned()
    counts = queries.count_by_kind(unowned)
    kind = request.GET.get("kind", "")
    if kind in owned_resources.OWNED_KINDS:
        unowned = [one for one in unowned if one.kind.name == kind]
    else:
        kind = ""
    page = Paginator(unowned, UNOWNED_PER_PAGE).get_page(request.GET.get("page"))
    paths = owned_resources.find_paths(page.object_list)
    context = {
        "page": page,
        "rows": [(one, paths.get(one.name, "")) for one in page],
        "kind": kind,
        "plural": owned_resources.OWNED_KINDS[kind].plural if kind else "",
        "counts": counts,
        "total": sum(count for _, count in counts),
        "has_teams": bool(authority.read_teams()),
    }
    return render(request, "core/teams_unowned.html", context)


@page_view("GET", "POST")
def new_team(request: UserRequest) -> HttpResponse:
    actor = actor_of(request)
    parents = [one for one in _list_parents() if _may_edit(actor, one[0])]
    if not parents:
        actor.require_power(Power.ADMINISTER)
    start = {"parent": request.GET.get("parent", "")}
    form = NewTeamForm(parents, submitted_data(request), initial=start)

    def create(reason: str, now: datetime) -> TeamChange:
        return services.create_team(
            slug=form.get_text("slug").strip(),
            wanted=form.read_fields(),
            reason=reason,
            actor=actor,
            now=now,
        )

    context = {"heading": "Create a team", "may_be_root": request.user.is_admin}
    return _change_or_show(request, form, create, "core/team_form.html", context, None)


@page_view("GET", "POST")
def change_team(request: UserRequest, slug: str) -> HttpResponse:
    """Change name, description, runbook, parent and groups of a team."""
    team, actor = _get_editable(request, slug)
    document = services.read_document(slug)
    parents = [one for one in _list_parents() if one[0] != slug]
    initial = {**document, "parent": document["parent"] or "", **_build_seen(document)}
    form = TeamForm(parents, submitted_data(request), initial=initial)

    def change(reason: str, now: datetime) -> TeamChange:
        return _change(form, slug, form.read_fields(), reason, actor, now)

    return _change_or_show(
        request, form, change, "core/team_form.html", {"heading": f"Change {team.name}"}, team
    )


@page_view("GET", "POST")
def add_members(request: UserRequest, slug: str) -> HttpResponse:
    team, actor = _get_editable(request, slug)
    form = MembersForm(submitted_data(request))

    def add(reason: str, now: datetime) -> TeamChange:
        names = split_words(form.get_text("people"))
        if not names:
            raise InvalidInput({"members": ["Enter at least one user name."]})
        roles = dict.fromkeys(names, form.get_text("role"))
        return services.change_members(slug=slug, roles=roles, reason=reason, actor=actor, now=now)

    context = {"choices": MEMBER_CHOICES}
    return _change_or_show(request, form, add, "core/team_members.html", context, team)


@page_view("GET", "POST")
def change_member(request: UserRequest, slug: str, user_id: int) -> HttpResponse:
    """Change a member's role in a team, or remove them."""
    team, actor = _get_editable(request, slug)
    membership = Membership.objects.select_related("user").filter(team=team, user=user_id).first()
    if membership is None:
        raise NotFound("This person is not a member of the team.")
    form = MemberForm(submitted_data(request), initial={"role": membership.role})
    username = membership.user.username

    def change(reason: str, now: datetime) -> TeamChange:
        roles = {username: form.get_text("role") or None}
        return services.change_members(slug=slug, roles=roles, reason=reason, actor=actor, now=now)

    context = {"member": membership, "choices": MEMBER_CHOICES}
    return _change_or_show(request, form, change, "core/team_member.html", context, team)


@page_view("GET", "POST")
def change_patterns(request: UserRequest, slug: str) -> HttpResponse:
    """Change the patterns of what a team owns; with `check`, show the effect only."""
    team, actor = _get_editable(request, slug)
    document = services.read_document(slug)
    initial = {"owns": "\n".join(document["owns"]), **_build_seen(document)}
    form = PatternsForm(submitted_data(request), initial=initial)

    def change(reason: str, now: datetime) -> TeamChange:
        wanted = {"owns": split_words(form.get_text("owns"))}
        return _change(form, slug, wanted, reason, actor, now)

    context: dict[str, Any] = {"kinds": owned_resources.OWNED_KINDS.values()}
    if form.is_bound and "check" in request.POST and form.is_valid():
        context["preview"] = queries.preview_patterns(slug, split_words(form.get_text("owns")))
    return _change_or_show(request, form, change, "core/team_patterns.html", context, team)


@page_view("GET", "POST")
def delete_team(request: UserRequest, slug: str) -> HttpResponse:
    team, actor = _get_editable(request, slug)
    form = ChangeRequestForm(submitted_data(request))

    def delete(reason: str, now: datetime) -> TeamChange:
        return services.delete_team(slug=slug, reason=reason, actor=actor, now=now)

    owned = queries.list_owned(slug)
    context = {
        "below": team.children.order_by("name"),
        "tokens": team.tokens.filter(revoked_at=None).exclude(expires_at__lte=db_now()),
        "owned_total": len(owned),
        "owned_counts": queries.count_by_kind(owned),
        "is_last": not Team.objects.exclude(pk=team.pk).exists(),
    }
    return _change_or_show(request, form, delete, "core/team_delete.html", context, team)


def _change_or_show(
    request: UserRequest,
    form: ChangeRequestForm,
    make: Callable[[str, datetime], TeamChange],
    template: str,
    context: Mapping[str, Any],
    team: Team | None,
) -> HttpResponse:
    """Make the change if the form is valid and has a reason, or else show the form."""
    now = db_now()
    require_fresh(request, now)
    back = reverse("team_page", args=[team.slug]) if team else reverse("teams_page")
    status = 422 if form.is_bound else 200
    more: dict[str, Any] = {}
    if "preview" in context:
        status = 200
    elif form.is_valid():
        try:
            change = make(form.get_text("reason").strip(), now)
        except InvalidInput as error:
            form.add_service_errors(error.errors)
        except Conflict as conflict:
            more["refused"], status = conflict.detail, 409
        else:
            return respond_done(request, _describe_outcome(change), back, waits=_waits(change))
    shown = {
        **context,
        "form": form,
        "team": team,
        "back": back,
        "approvers": _list_approvers(request, f"team:{team.slug if team else ''}"),
        "now": now,
        **more,
    }
    return show(request, template, shown, status=status)


def _describe_outcome(change: TeamChange) -> str:
    if change.approval is not None:
        return f"Approval requested: {change.approval.summary}."
    return "Saved." if change.diff else "Nothing changed: the team is like this already."


def _waits(change: TeamChange) -> bool:
    return change.approval is not None


def _change(
    form: ChangeRequestForm,
    slug: str,
    wanted: Mapping[str, Any],
    reason: str,
    actor: Actor,
    now: datetime,
) -> TeamChange:
    return services.change_team(
        slug=slug, wanted=wanted, seen=form.get_text("seen"), reason=reason, actor=actor, now=now
    )


def _build_seen(document: Mapping[str, Any]) -> dict[str, str]:
    return {"seen": changes.get_revision(dict(document))}


def _get_editable(request: UserRequest, slug: str) -> tuple[Team, Actor]:
    """Return a team and the actor; raise :class:`Forbidden` unless they may edit it."""
    team, actor = services.get_team(slug), actor_of(request)
    authority.require(actor, Action.EDIT, f"team:{slug}")
    return team, actor


def _may_edit(actor: Actor, slug: str) -> bool:
    return authority.read_teams().decide(actor, Action.EDIT, f"team:{slug}").is_allowed


def _list_parents() -> list[tuple[str, str]]:
    return list(Team.objects.order_by("name").values_list("slug", "name"))


def _list_approvers(request: UserRequest, resource: str) -> list[str]:
    return authority.who_may(Action.APPROVE, resource, but=request.user.pk)


def _search_members(team: Team, query: Mapping[str, str]) -> dict[str, Any]:
    """Return a page of the members that match `?q=`, leads first."""
    q = query.get("q", "").replace("\x00", "").strip()[:MAX_SEARCH_LENGTH]
    rows = Membership.objects.filter(team=team).select_related("user")
    total = rows.count()
    if q:
        rows = rows.filter(Q(user__username__icontains=q) | Q(user__display_name__icontains=q))
    leads_first = Case(
        When(role="lead", then=Value(0)), default=Value(1), output_field=IntegerField()
    )
    pages = Paginator(
        rows.order_by("-user__is_active", leads_first, "user__username"), MEMBERS_PER_PAGE
    )
    return {"members": pages.get_page(query.get("page")), "q": q, "members_total": total}
