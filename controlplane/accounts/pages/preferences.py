"""Page of a person's own preferences."""

from django.contrib import messages
from django.contrib.auth.forms import PasswordChangeForm
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from controlplane.accounts.authentication import password_changes, throttle
from controlplane.accounts.authentication.views.sign_in import get_safe_next, record_failure
from controlplane.accounts.people import services
from controlplane.accounts.people.forms import PreferencesForm
from controlplane.accounts.requests import UserRequest
from controlplane.core.clock import db_now
from controlplane.core.http.permissions import actor_of
from controlplane.core.page_responses import page_view

THEMES = {"light", "dark"}
A_YEAR = 365 * 24 * 3600


@page_view("GET", "POST")
def preferences_page(request: UserRequest) -> HttpResponse:
    """Show the forms for one's own name, time zone and password (GET), or save one (POST)."""
    user = request.user
    now = db_now()
    start = {"display_name": user.display_name, "time_zone": user.time_zone}
    about = PreferencesForm(initial=start)
    password = PasswordChangeForm(user)
    if request.method == "POST" and "old_password" in request.POST:
        if not throttle.is_allowed(request, user.username):
            return throttle.locked_out(request, credentials={"username": user.username})
        password = PasswordChangeForm(user, request.POST)
        if "old_password" in password.errors:
            # Prevents guessing the password at an open browser.
            throttle.count_failure(request, user.username)
            record_failure(request, user.username)
        elif password.is_valid():
            chosen = password.cleaned_data["new_password1"]
            password_changes.change_own_password(request, chosen, now)
            return redirect("preferences")
    elif request.method == "POST":
        about = PreferencesForm(request.POST, initial={"time_zone": user.time_zone})
        if about.is_valid():
            services.change_user(user=user, actor=actor_of(request), now=now, **about.cleaned_data)
            messages.success(request, "Preferences saved.")
            return redirect("preferences")
    wrong = about.errors or password.errors
    context = {"about": about, "password": password, "now": now}
    return render(request, "core/preferences.html", context, status=422 if wrong else 200)


@require_POST
def set_theme(request: HttpRequest) -> HttpResponse:
    """Store the choice of light or dark theme in a cookie, so that pages are rendered with it."""
    response = redirect(get_safe_next(request))
    chosen = request.POST.get("theme", "")
    if chosen in THEMES:
        response.set_cookie(
            "theme", chosen, max_age=A_YEAR, samesite="Lax", secure=request.is_secure()
        )
    else:
        response.delete_cookie("theme", samesite="Lax")
    return response
