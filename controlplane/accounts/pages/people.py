"""The People pages, for admins: accounts, roles, sessions."""

import secrets
from datetime import datetime

from django.core.exceptions import ValidationError
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from controlplane.accounts.authentication import factors, resets
from controlplane.accounts.models.people import User
from controlplane.accounts.models.tokens import Token
from controlplane.accounts.people import leaving, services, sessions
from controlplane.accounts.people.forms import ABOUT_ROLES, LeavingForm, NewPersonForm, PersonForm
from controlplane.accounts.requests import UserRequest
from controlplane.core.actors import Actor
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict, DomainError, InvalidInput, NotFound
from controlplane.core.http.confirmation import require_fresh
from controlplane.core.http.permissions import actor_of
from controlplane.core.page_responses import redirect_done, show, signed_in
from controlplane.core.roles import Power

from . import people_search
from . import sessions as session_pages

TOKENS_SHOWN = 20


@signed_in
@require_GET
def people_page(request: UserRequest) -> HttpResponse:
    actor_of(request).require_power(Power.ADMINISTER)
    now = db_now()
    return render(request, "core/people.html", {"now": now, **people_search.page(request.GET, now)})


@signed_in
@require_GET
def person_page(request: UserRequest, user_id: int) -> HttpResponse:
    actor_of(request).require_power(Power.ADMINISTER)
    person, now = _person(user_id), db_now()
    rows, total = session_pages.rows(person, request, now)
    tokens = Token.objects.usable(now).filter(owner=person)
    context = {
        "now": now,
        "person": person,
        "role_words": ABOUT_ROLES[person.role],  # type: ignore[index]
        "rows": rows,
        "total": total,
        "tokens": tokens.order_by("-id")[:TOKENS_SHOWN],
        "token_count": tokens.count(),
        "factors": factors.of(person),
        "factor_required": factors.is_required(person),
    }
    return render(request, "core/person.html", context)


@signed_in
@sensitive_variables("password")
@require_http_methods(["GET", "POST"])
def new(request: UserRequest) -> HttpResponse:
    """Make a person. Their first password is in this answer and nowhere else."""
    actor, now = _admin(request)
    start = {"time_zone": request.user.time_zone, "role": "viewer"}
    form = NewPersonForm(request.POST if request.method == "POST" else None, initial=start)
    if form.is_valid():
        password = secrets.token_urlsafe(15)
        try:
            made = services.create_user(
                password=password, actor=actor, now=now, **form.cleaned_data
            )
        except (InvalidInput, ValidationError) as error:
            form.add_service_errors(_complaints(error))
        else:
            return _once(request, made, f"The first password of {made.username}", password)
    return _form(request, form, None)


@signed_in
@require_http_methods(["GET", "POST"])
def change(request: UserRequest, user_id: int) -> HttpResponse:
    actor, now = _admin(request)
    person = _person(user_id)
    start = {name: getattr(person, name) for name in PersonForm.base_fields}
    form = PersonForm(request.POST if request.method == "POST" else None, initial=start)
    if form.is_valid():
        try:
            changes = {name: form.cleaned_data[name] for name in form.changed_data}
            services.change_user(user=person, actor=actor, now=now, **changes)
        except (InvalidInput, ValidationError) as error:
            form.add_service_errors(_complaints(error))
        except Conflict as conflict:
            form.add_service_errors({"role": [conflict.detail]})
        else:
            return redirect_done(request, f"{person.username} is changed.", _page(person))
    return _form(request, form, person)


@signed_in
@require_http_methods(["GET", "POST"])
def deactivate(request: UserRequest, user_id: int) -> HttpResponse:
    """Show what stops; after confirmation, deactivate the person in one transaction."""
    actor, now = _admin(request)
    person = _person(user_id)
    heirs = leaving.heirs(person)
    form = LeavingForm(heirs, request.POST if request.method == "POST" else None)
    if form.is_valid():
        heir = form.cleaned_data["heir"]
        try:
            leaving.deactivate(user=person, heir=heir, actor=actor, now=now)
        except (Conflict, InvalidInput) as error:
            return _refused(request, "Not deactivated", error)
        return redirect_done(request, f"{person.username} is deactivated.", _page(person))
    context = {"person": person, "now": now, "heirs": heirs, "stops": leaving.preview(person, now)}
    status = 422 if form.is_bound else 200
    return show(request, "core/person_leave.html", {"form": form, **context}, status=status)


@signed_in
@require_POST
def activate(request: UserRequest, user_id: int) -> HttpResponse:
    actor, now = _admin(request, user_id)
    person = services.change_user(user=_person(user_id), actor=actor, now=now, is_active=True)
    return redirect_done(request, f"{person.username} may sign in again.", _page(person))


@signed_in
@require_POST
def end_sessions(request: UserRequest, user_id: int) -> HttpResponse:
    """End one session of a person, or all of them."""
    actor, now = _admin(request, user_id)
    person = _person(user_id)
    which = request.POST.get("session", "").replace("\x00", "")
    if which:
        sessions.end(user=person, session_id=which, actor=actor, now=now)
    else:
        sessions.end_all(user=person, actor=actor, now=now)
    said = "The session has" if which else f"All sessions of {person.username} have"
    return redirect_done(request, f"{said} ended; pages close within seconds.", _page(person))


@signed_in
@require_http_methods(["GET", "POST"])
def reset_factors(request: UserRequest, user_id: int) -> HttpResponse:
    """Remove the second factors of somebody who lost them, and end all their sessions."""
    actor, now = _admin(request)
    person = _person(user_id)
    if request.method == "GET":
        context = {"person": person, "required": factors.is_required(person)}
        return show(request, "core/person_factors.html", context)
    factors.remove_all(user=person, actor=actor, now=now)
    return redirect_done(request, f"{person.username} has no second factor now.", _page(person))


@signed_in
@require_POST
def reset_link(request: UserRequest, user_id: int) -> HttpResponse:
    actor, now = _admin(request, user_id)
    person = _person(user_id)
    try:
        link = resets.issue(person, actor, now)
    except Conflict as conflict:
        return _refused(request, "No link", conflict)
    return _once(request, person, f"A link for {person.username}", request.build_absolute_uri(link))


def _admin(request: UserRequest, user_id: int | None = None) -> tuple[Actor, datetime]:
    """Return the actor and time; requires the power to administer and a recent confirmation."""
    actor, now = actor_of(request), db_now()
    actor.require_power(Power.ADMINISTER)
    back = "" if user_id is None else reverse("person_page", args=[user_id])
    require_fresh(request, now, next_url=back)
    return actor, now


def _person(user_id: int) -> User:
    person = User.objects.filter(pk=user_id).first()
    if person is None:
        raise NotFound(f"There is no person {user_id}.")
    return person


def _page(person: User) -> str:
    return reverse("person_page", args=[person.pk])


def _form(request: UserRequest, form: PersonForm, person: User | None) -> HttpResponse:
    context = {"form": form, "person": person, "roles": ABOUT_ROLES.items()}
    return show(request, "core/person_form.html", context, status=422 if form.is_bound else 200)


def _once(request: UserRequest, person: User, heading: str, secret: str) -> HttpResponse:
    context = {"person": person, "heading": heading, "secret": secret}
    return show(request, "core/person_once.html", context)


def _complaints(error: InvalidInput | ValidationError) -> dict[str, list[str]]:
    return error.message_dict if isinstance(error, ValidationError) else error.errors


def _refused(request: UserRequest, heading: str, error: DomainError) -> HttpResponse:
    errors = getattr(error, "errors", {})
    said = " ".join(text for texts in errors.values() for text in texts) or error.detail
    context = {"heading": heading, "detail": said, "back": "people_page"}
    return show(request, "core/notice.html", context, status=error.status)
