"""Tokens page, and its forms to create, rotate, revoke and hand over tokens."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.core.paginator import Paginator
from django.db.models import Q, QuerySet
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.debug import sensitive_variables

from controlplane.accounts.models.people import User
from controlplane.accounts.models.tokens import Token
from controlplane.accounts.requests import UserRequest, require_admin
from controlplane.core import authority
from controlplane.core.actors import Actor
from controlplane.core.change_views import submitted_data
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict, InvalidInput
from controlplane.core.http.confirmation import require_fresh
from controlplane.core.http.permissions import actor_of
from controlplane.core.page_responses import page_view, redirect_done, show
from controlplane.core.roles import SCOPES_OF, Power, Role

from . import rotation, services
from .forms import AREAS, HandOverForm, NewTokenForm, RevokeForm, RotateForm

PAGE = "/tokens/"
ON_A_PAGE = 50
CALLERS_SHOWN = 8
MAX_OWNERS = 500
SOON = timedelta(days=14)
USUAL_DAYS = "90"
# Tone, icon and word of each state.
LOOKS = {
    "active": ("released", "check", "In use"),
    "soon": ("pending", "clock", "Ends soon"),
    "expired": ("quiet", "clock", "Expired"),
    "revoked": ("quiet", "close", "Revoked"),
    "orphaned": ("overdue", "warning", "Owner deactivated"),
}


@page_view("GET")
def tokens_page(request: UserRequest) -> HttpResponse:
    """List tokens, newest first: all tokens for an admin, else one's own."""
    actor, now = actor_of(request), db_now()
    q, owner = _read_text(request.GET, "q"), _read_text(request.GET, "owner")
    ended = request.GET.get("state") == "ended"
    found = _filter_tokens(_filter_visible(request.user), q, owner)
    usable = Q(revoked_at=None) & (Q(expires_at=None) | Q(expires_at__gt=now))
    shown = found.exclude(usable) if ended else found.filter(usable)
    page = Paginator(shown.order_by("-id"), ON_A_PAGE).get_page(request.GET.get("page"))
    context = {
        "now": now,
        "page": page,
        "rows": [_build_row(token, actor, now) for token in page],
        "q": q,
        "owner": owner,
        "ended": ended,
    }
    return render(request, "core/tokens.html", context)


@page_view("GET", "POST")
@sensitive_variables("text")
def create_token(request: UserRequest) -> HttpResponse:
    """Create a token; the response shows its text once."""
    actor, now = require_admin(request)
    start = {"owner": request.user.pk, "days": USUAL_DAYS}
    form = NewTokenForm(request.POST if request.method == "POST" else None, initial=start)
    if form.is_valid():
        values = form.cleaned_data
        try:
            token, text = services.create_token(
                name=values["name"],
                owner=values["owner"],
                scopes=values["scopes"],
                actor=actor,
                now=now,
                lifetime=form.lifetime(),
                limit_to=form.limit_to(),
                team=values["team"],
                patterns=form.list_patterns(),
                only_owned=values["only_owned"],
            )
        except InvalidInput as error:
            form.add_service_errors(error.errors)
        else:
            return _show_secret(request, token, text)
    people = User.objects.filter(is_active=True).order_by("username")[:MAX_OWNERS]
    context = {"form": form, "areas": AREAS, "people": people, "chosen": form["scopes"].value()}
    return show(request, "core/token_new.html", context, status=422 if form.is_bound else 200)


@page_view("GET", "POST")
@sensitive_variables("text")
def rotate_token(request: UserRequest, token_id: int) -> HttpResponse:
    """Replace a token by one with the same rights; the response shows its text once."""
    actor, now = actor_of(request), db_now()
    token = services.get_token(token_id, _filter_visible(request.user))
    services.require_may_manage(token, actor)
    require_fresh(request, now)
    form = RotateForm(submitted_data(request), initial={"overlap": "24h"})
    if form.is_valid():
        try:
            successor, text = rotation.rotate_token(
                token=token,
                overlap=rotation.parse_overlap(form.cleaned_data["overlap"]),
                lifetime=form.lifetime(),
                actor=actor,
                now=now,
            )
        except InvalidInput as error:
            form.add_error(None, [text for texts in error.errors.values() for text in texts])
        except Conflict as conflict:
            form.add_error(None, conflict.detail)
        else:
            return _show_secret(request, successor, text)
    context = {"token": token, "form": form, "now": now}
    return show(request, "core/token_rotate.html", context, status=422 if form.is_bound else 200)


@page_view("GET", "POST")
def revoke_token(request: UserRequest, token_id: int) -> HttpResponse:
    """Revoke a token for a reason."""
    actor, now = actor_of(request), db_now()
    token = services.get_token(token_id, _filter_visible(request.user))
    services.require_may_manage(token, actor)
    require_fresh(request, now)
    form = RevokeForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        reason = form.cleaned_data["reason"]
        services.revoke_token(token=token, actor=actor, now=now, reason=reason)
        message = f"{token.name} is revoked; programs that use it are refused within a second."
        return redirect_done(request, message, PAGE)
    context = {"token": token, "form": form, "now": now}
    return show(request, "core/token_revoke.html", context, status=422 if form.is_bound else 200)


@page_view("GET", "POST")
def hand_over_token(request: UserRequest, token_id: int) -> HttpResponse:
    actor, now = require_admin(request)
    token = services.get_token(token_id, Token.objects.select_related("owner", "team"))
    roles = [role for role in Role if set(token.scopes) <= SCOPES_OF[role]]
    people = User.objects.filter(is_active=True, role__in=roles).exclude(pk=token.owner_id)
    owners = list(people.order_by("username")[:MAX_OWNERS])
    form = HandOverForm(owners, submitted_data(request), initial={"team": token.team_id})
    if form.is_valid():
        try:
            handed = services.hand_over_token(
                token=token,
                owner=form.cleaned_data["owner"] or token.owner,
                team=form.cleaned_data["team"],
                actor=actor,
                now=now,
            )
        except InvalidInput as error:
            form.add_service_errors(error.errors)
        except Conflict as conflict:
            form.add_service_errors({"owner": [conflict.detail]})
        else:
            name = handed.team.name if handed.team else handed.owner.username
            return redirect_done(request, f"{name} now owns {handed.name}.", PAGE)
    context = {"token": token, "form": form, "owners": owners}
    return show(request, "core/token_hand_over.html", context, status=422 if form.is_bound else 200)


@sensitive_variables("text")
def _show_secret(request: UserRequest, token: Token, text: str) -> HttpResponse:
    context = {
        "token": token,
        "text": text,
        "origin": request.build_absolute_uri("/")[:-1],
        "admin_powers": services.describe_admin_powers(token),
    }
    return show(request, "core/token_secret.html", context)


def _filter_visible(user: User) -> QuerySet[Token]:
    """Return the tokens that the person sees: all for admins, else their own and their teams'."""
    related = ("callers", "replaced_by")
    tokens = Token.objects.select_related("owner", "team", "replaces").prefetch_related(*related)
    if user.is_admin:
        return tokens
    return tokens.filter(Q(owner=user) | Q(team__slug__in=authority.read_teams().teams_of(user.pk)))


def _filter_tokens(tokens: QuerySet[Token], q: str, owner: str) -> QuerySet[Token]:
    if owner:
        tokens = tokens.filter(owner__username=owner)
    if q:
        prefix = q.removeprefix("sg_").split("_")[0]
        tokens = tokens.filter(
            Q(name__icontains=q) | Q(prefix=prefix) | Q(owner__username__icontains=q)
        )
    return tokens


def _build_row(token: Token, actor: Actor, now: datetime) -> dict[str, Any]:
    state = _find_state(token, now)
    ended = state in {"revoked", "expired"}
    callers = list(token.callers.all())
    successors = [one for one in token.replaced_by.all() if not one.has_ended(now)]
    may_manage = not ended and services.may_manage(token, actor)
    return {
        "token": token,
        "state": state,
        "callers": callers[:CALLERS_SHOWN],
        "more_callers": len(callers[CALLERS_SHOWN:]),
        "look": dict(zip(("tone", "icon", "word"), LOOKS[state], strict=True)),
        "successors": successors,
        "may_revoke": may_manage,
        "may_rotate": may_manage and state in {"active", "soon"} and not successors,
        "may_hand_over": not ended and actor.has(Power.ADMINISTER),
    }


def _find_state(token: Token, now: datetime) -> str:
    if token.revoked_at is not None:
        return "revoked"
    if token.has_ended(now):
        return "expired"
    if not (token.team_id or token.owner.is_active):
        return "orphaned"
    if token.expires_at is not None and token.expires_at - now <= SOON:
        return "soon"
    return "active"


def _read_text(query: Mapping[str, Any], name: str) -> str:
    return str(query.get(name, "")).replace("\x00", "").strip()[:200]
