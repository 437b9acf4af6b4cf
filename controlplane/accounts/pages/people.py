"""Pages to administer people: accounts, roles, sessions, second factors."""

import secrets
from collections.abc import Mapping
from datetime import datetime
from functools import reduce
from operator import or_
from typing import Any

from allauth.mfa.models import Authenticator
from django.core.exceptions import ValidationError
from django.core.paginator import Paginator
from django.db.models import Exists, Max, OuterRef, Q
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.debug import sensitive_variables

from controlplane.accounts.authentication import factors, resets
from controlplane.accounts.emergency_codes import services as emergency_codes
from controlplane.accounts.models.people import User
from controlplane.accounts.models.tokens import Token
from controlplane.accounts.people import deactivation, services, sessions
from controlplane.accounts.people.forms import ABOUT_ROLES, LeavingForm, NewPersonForm, PersonForm
from controlplane.accounts.requests import UserRequest, require_admin
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict, DomainError, InvalidInput
from controlplane.core.http.permissions import actor_of
from controlplane.core.page_responses import page_view, redirect_done, show
from controlplane.core.roles import Power, Role

from . import sessions as session_pages

TOKENS_SHOWN = 20
PEOPLE_PER_PAGE = 50
MAX_SEARCH_LENGTH = 200


@page_view("GET")
def people_page(request: UserRequest) -> HttpResponse:
    actor_of(request).require_power(Power.ADMINISTER)
    now = db_now()
    return render(request, "core/people.html", {"now": now, **_search_people(request.GET, now)})


@page_view("GET")
def person_page(request: UserRequest, user_id: int) -> HttpResponse:
    actor_of(request).require_power(Power.ADMINISTER)
    person, now = services.get_user(user_id), db_now()
    rows, total = session_pages.list_rows(person, request, now)
    tokens = Token.objects.usable(now).filter(owner=person)
    context = {
        "now": now,
        "person": person,
        "role_words": ABOUT_ROLES[person.role],  # type: ignore[index]
        "rows": rows,
        "total": total,
        "tokens": tokens.order_by("-id")[:TOKENS_SHOWN],
        "token_count": tokens.count(),
        "factors": factors.get_factors(person),
        "factor_required": factors.is_required(person),
        "may_have_emergency_code": emergency_codes.may_have(person),
        "emergency_code": emergency_codes.get_current(person),
    }
    return render(request, "core/person.html", context)


@page_view("GET", "POST")
@sensitive_variables("password")
def create_person(request: UserRequest) -> HttpResponse:
    """Show the form (GET), or create a person and show their first password once (POST)."""
    actor, now = require_admin(request)
    start = {"time_zone": request.user.time_zone, "role": "viewer"}
    form = NewPersonForm(request.POST if request.method == "POST" else None, initial=start)
    if form.is_valid():
        password = secrets.token_urlsafe(15)
        try:
            person = services.create_user(
                password=password,
                must_change_password=True,
                actor=actor,
                now=now,
                **form.cleaned_data,
            )
        except (InvalidInput, ValidationError) as error:
            form.add_service_errors(_get_errors(error))
        else:
            return _show_secret(request, person, f"First password of {person.username}", password)
    return _show_form(request, form, None)


@page_view("GET", "POST")
def change_person(request: UserRequest, user_id: int) -> HttpResponse:
    actor, now = require_admin(request)
    person = services.get_user(user_id)
    start = {name: getattr(person, name) for name in PersonForm.base_fields}
    form = PersonForm(request.POST if request.method == "POST" else None, initial=start)
    if form.is_valid():
        try:
            changes = {name: form.cleaned_data[name] for name in form.changed_data}
            services.change_user(user=person, actor=actor, now=now, **changes)
        except (InvalidInput, ValidationError) as error:
            form.add_service_errors(_get_errors(error))
        except Conflict as conflict:
            form.add_service_errors({"role": [conflict.detail]})
        else:
            return redirect_done(request, f"{person.username} saved.", _build_url(person.pk))
    return _show_form(request, form, person)


@page_view("GET", "POST")
def deactivate_person(request: UserRequest, user_id: int) -> HttpResponse:
    """Show the consequences of a deactivation (GET), or deactivate the person (POST)."""
    actor, now = require_admin(request)
    person = services.get_user(user_id)
    heirs = deactivation.find_heirs(person)
    form = LeavingForm(heirs, request.POST if request.method == "POST" else None)
    if form.is_valid():
        heir = form.cleaned_data["heir"]
        try:
            deactivation.deactivate_user(user=person, heir=heir, actor=actor, now=now)
        except (Conflict, InvalidInput) as error:
            return _show_refusal(request, "Not deactivated", error)
        return redirect_done(request, f"{person.username} deactivated.", _build_url(person.pk))
    context = {
        "person": person,
        "now": now,
        "heirs": heirs,
        "stops": deactivation.preview_deactivation(person, now),
        "has_emergency_code": emergency_codes.get_current(person) is not None,
    }
    status = 422 if form.is_bound else 200
    return show(request, "core/person_deactivate.html", {"form": form, **context}, status=status)


@page_view("POST")
def activate_person(request: UserRequest, user_id: int) -> HttpResponse:
    actor, now = require_admin(request, next_url=_build_url(user_id))
    person = services.change_user(
        user=services.get_user(user_id), actor=actor, now=now, is_active=True
    )
    return redirect_done(request, f"{person.username} activated.", _build_url(person.pk))


@page_view("POST")
def end_sessions(request: UserRequest, user_id: int) -> HttpResponse:
    actor, now = require_admin(request, next_url=_build_url(user_id))
    person = services.get_user(user_id)
    which = request.POST.get("session", "").replace("\x00", "")
    if which:
        sessions.end_session(user=person, session_id=which, actor=actor, now=now)
    else:
        sessions.end_all(user=person, actor=actor, now=now)
    ended = "The session has" if which else f"All sessions of {person.username} have"
    return redirect_done(
        request, f"{ended} ended; pages close within seconds.", _build_url(user_id)
    )


@page_view("GET", "POST")
def reset_factors(request: UserRequest, user_id: int) -> HttpResponse:
    """Ask to confirm (GET), or remove a person's second factors and end their sessions (POST)."""
    actor, now = require_admin(request)
    person = services.get_user(user_id)
    if request.method == "GET":
        context = {"person": person, "required": factors.is_required(person)}
        return show(request, "core/person_factors.html", context)
    factors.remove_all(user=person, actor=actor, now=now)
    message = f"Second factors of {person.username} reset."
    return redirect_done(request, message, _build_url(user_id))


@page_view("POST")
def revoke_emergency_code(request: UserRequest, user_id: int) -> HttpResponse:
    actor, now = require_admin(request, next_url=_build_url(user_id))
    person = services.get_user(user_id)
    emergency_codes.revoke_code(user=person, actor=actor, now=now)
    message = (
        f"Emergency code of {person.username} revoked. Data planes refuse it as soon as they read"
        " the change."
    )
    return redirect_done(request, message, _build_url(user_id))


@page_view("POST")
def reset_link(request: UserRequest, user_id: int) -> HttpResponse:
    actor, now = require_admin(request, next_url=_build_url(user_id))
    person = services.get_user(user_id)
    try:
        link = resets.issue_link(person, actor, now)
    except Conflict as conflict:
        return _show_refusal(request, "No link", conflict)
    url = request.build_absolute_uri(link)
    return _show_secret(request, person, f"Password link for {person.username}", url)


def _build_url(user_id: int) -> str:
    return reverse("person_page", args=[user_id])


def _show_form(request: UserRequest, form: PersonForm, person: User | None) -> HttpResponse:
    context = {"form": form, "person": person, "roles": ABOUT_ROLES.items()}
    return show(request, "core/person_form.html", context, status=422 if form.is_bound else 200)


def _show_secret(request: UserRequest, person: User, heading: str, secret: str) -> HttpResponse:
    context = {"person": person, "heading": heading, "secret": secret}
    return show(request, "core/person_secret.html", context)


def _get_errors(error: InvalidInput | ValidationError) -> dict[str, list[str]]:
    return error.message_dict if isinstance(error, ValidationError) else error.errors


def _show_refusal(request: UserRequest, heading: str, error: DomainError) -> HttpResponse:
    errors = getattr(error, "errors", {})
    detail = " ".join(text for texts in errors.values() for text in texts) or error.detail
    context = {"heading": heading, "detail": detail, "back": "people_page"}
    return show(request, "core/notice.html", context, status=error.status)


def _search_people(query: Mapping[str, str], now: datetime) -> dict[str, Any]:
    """Return a page of people that match the query: `q` (name or address), `role`, `state`."""
    search = query.get("q", "").replace("\x00", "").strip()[:MAX_SEARCH_LENGTH]
    role = query.get("role", "")
    state = query.get("state", "")
    people = User.objects.filter(is_active=state != "deactivated")
    if role in list(Role):
        people = people.filter(role=role)
    if search:
        fields = ("username", "display_name", "email", "slack_user_id")
        matches = [Q(**{f"{field}__icontains": search}) for field in fields]
        people = people.filter(reduce(or_, matches))
    second = Authenticator.objects.filter(user=OuterRef("pk"), type__in=factors.SECOND_FACTOR_TYPES)
    people = people.annotate(
        has_factor=Exists(second),
        has_token=Exists(Token.objects.usable(now).filter(owner=OuterRef("pk"))),
        seen_at=Max(
            "browser_sessions__last_seen_at", filter=Q(browser_sessions__expire_date__gt=now)
        ),
    )
    pages = Paginator(people.order_by("username"), PEOPLE_PER_PAGE)
    return {
        "page": pages.get_page(query.get("page")),
        "q": search,
        "role": role if role in list(Role) else "",
        "state": state if state == "deactivated" else "",
        "roles": list(Role),
    }
