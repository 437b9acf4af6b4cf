"""The Tokens page: programs' credentials, their lifetimes and owners."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.core.paginator import Paginator
from django.db.models import Q, QuerySet
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_GET, require_http_methods

from controlplane.accounts.models.people import User
from controlplane.accounts.models.tokens import Token
from controlplane.accounts.requests import UserRequest
from controlplane.core.actors import Actor
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict, InvalidInput, NotFound
from controlplane.core.http.confirmation import require_fresh
from controlplane.core.http.permissions import actor_of
from controlplane.core.page_responses import redirect_done, show, signed_in
from controlplane.core.roles import SCOPES_OF, Power, Role

from . import services
from .forms import HandOverForm, NewTokenForm, RevokeForm
from .scopes import AREAS

PAGE = "/tokens/"
ON_A_PAGE = 50
MAX_OWNERS = 500
SOON = timedelta(days=14)
USUAL_DAYS = "90"
# How a state looks: tone, icon, word.
LOOKS = {
    "active": ("released", "check", "In use"),
    "soon": ("pending", "clock", "Ends soon"),
    "expired": ("quiet", "clock", "Expired"),
    "revoked": ("quiet", "close", "Revoked"),
    "orphaned": ("overdue", "warning", "Owner deactivated"),
}


@dataclass(frozen=True)
class Row:
    token: Token
    state: str
    may_revoke: bool
    may_hand_over: bool

    @property
    def look(self) -> dict[str, str]:
        return dict(zip(("tone", "icon", "word"), LOOKS[self.state], strict=True))


@signed_in
@require_GET
def tokens_page(request: UserRequest) -> HttpResponse:
    """List tokens, newest first: all of them for an admin, else one's own."""
    actor, now = actor_of(request), db_now()
    q, owner = _text(request.GET, "q"), _text(request.GET, "owner")
    ended = request.GET.get("state") == "ended"
    found = _narrowed(_seen_by(request.user), q, owner)
    usable = Q(revoked_at=None) & (Q(expires_at=None) | Q(expires_at__gt=now))
    shown = found.exclude(usable) if ended else found.filter(usable)
    page = Paginator(shown.order_by("-id"), ON_A_PAGE).get_page(request.GET.get("page"))
    context = {
        "now": now,
        "page": page,
        "rows": [_row(token, actor, now) for token in page],
        "q": q,
        "owner": owner,
        "ended": ended,
    }
    return render(request, "core/tokens.html", context)


@signed_in
@sensitive_variables("text")
@require_http_methods(["GET", "POST"])
def new(request: UserRequest) -> HttpResponse:
    """Make a token. Its text is in this answer and nowhere else."""
    actor, now = _admin(request)
    start = {"owner": request.user.pk, "days": USUAL_DAYS}
    form = NewTokenForm(request.POST if request.method == "POST" else None, initial=start)
    if form.is_valid():
        given = form.cleaned_data
        try:
            token, text = services.create(
                name=given["name"],
                owner=given["owner"],
                scopes=given["scopes"],
                actor=actor,
                now=now,
                lifetime=form.lifetime(),
                limit_to=form.limit_to(),
            )
        except InvalidInput as error:
            form.add_service_errors(error.errors)
        else:
            origin = request.build_absolute_uri("/")[:-1]
            context = {
                "token": token,
                "text": text,
                "origin": origin,
                "admin_powers": services.admin_powers(token),
            }
            return show(request, "core/token_once.html", context)
    people = User.objects.filter(is_active=True).order_by("username")[:MAX_OWNERS]
    context = {"form": form, "areas": AREAS, "people": people, "chosen": form["scopes"].value()}
    return show(request, "core/token_new.html", context, status=422 if form.is_bound else 200)


@signed_in
@require_http_methods(["GET", "POST"])
def revoke(request: UserRequest, token_id: int) -> HttpResponse:
    """End a token, for a reason: an admin any, everybody else their own."""
    actor, now = actor_of(request), db_now()
    token = _token(_seen_by(request.user), token_id)
    require_fresh(request, now)
    form = RevokeForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        reason = form.cleaned_data["reason"]
        services.revoke(token=token, actor=actor, now=now, reason=reason)
        said = f"{token.name} is revoked; programs that use it are refused within a second."
        return redirect_done(request, said, PAGE)
    context = {"token": token, "form": form, "now": now}
    return show(request, "core/token_revoke.html", context, status=422 if form.is_bound else 200)


@signed_in
@require_http_methods(["GET", "POST"])
def hand_over(request: UserRequest, token_id: int) -> HttpResponse:
    actor, now = _admin(request)
    token = _token(Token.objects.select_related("owner"), token_id)
    roles = [role for role in Role if set(token.scopes) <= SCOPES_OF[role]]
    people = User.objects.filter(is_active=True, role__in=roles).exclude(pk=token.owner_id)
    owners = list(people.order_by("username")[:MAX_OWNERS])
    form = HandOverForm(owners, request.POST if request.method == "POST" else None)
    if form.is_valid():
        try:
            handed = services.hand_over(
                token=token, owner=form.cleaned_data["owner"], actor=actor, now=now
            )
        except InvalidInput as error:
            form.add_service_errors(error.errors)
        except Conflict as conflict:
            form.add_service_errors({"owner": [conflict.detail]})
        else:
            return redirect_done(request, f"{handed.name} is {handed.owner.username}’s now.", PAGE)
    context = {"token": token, "form": form, "owners": owners}
    return show(request, "core/token_hand_over.html", context, status=422 if form.is_bound else 200)


def _admin(request: UserRequest) -> tuple[Actor, datetime]:
    actor, now = actor_of(request), db_now()
    actor.require_power(Power.ADMINISTER)
    require_fresh(request, now)
    return actor, now


def _seen_by(user: User) -> QuerySet[Token]:
    tokens = Token.objects.select_related("owner")
    return tokens if user.is_admin else tokens.filter(owner=user)


def _token(tokens: QuerySet[Token], token_id: int) -> Token:
    token = tokens.filter(pk=token_id).first()
    if token is None:
        raise NotFound(f"There is no token {token_id}.")
    return token


def _narrowed(tokens: QuerySet[Token], q: str, owner: str) -> QuerySet[Token]:
    if owner:
        tokens = tokens.filter(owner__username=owner)
    if q:
        prefix = q.removeprefix("sg_").split("_")[0]
        tokens = tokens.filter(
            Q(name__icontains=q) | Q(prefix=prefix) | Q(owner__username__icontains=q)
        )
    return tokens


def _row(token: Token, actor: Actor, now: datetime) -> Row:
    state = _state(token, now)
    ended = state in {"revoked", "expired"}
    return Row(token, state, not ended, not ended and actor.has(Power.ADMINISTER))


def _state(token: Token, now: datetime) -> str:
    if token.revoked_at is not None:
        return "revoked"
    if token.expires_at is not None and token.expires_at <= now:
        return "expired"
    if not token.owner.is_active:
        return "orphaned"
    if token.expires_at is not None and token.expires_at - now <= SOON:
        return "soon"
    return "active"


def _text(asked: Mapping[str, Any], name: str) -> str:
    return str(asked.get(name, "")).replace("\x00", "").strip()[:200]
