"""Security page, where people manage their own second factors."""

import base64

from allauth.mfa.totp.internal.auth import generate_totp_secret
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.debug import sensitive_post_parameters

from controlplane.accounts.authentication import audit_entries, codes, factors, links, passkeys
from controlplane.accounts.authentication.adapters import SecondFactorAdapter
from controlplane.accounts.emergency_codes import services as emergency_codes
from controlplane.accounts.requests import UserRequest
from controlplane.core import encryption
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict, InvalidInput
from controlplane.core.http import confirmation
from controlplane.core.http.permissions import actor_of
from controlplane.core.page_responses import page_view

PENDING = "totp_to_add"
PAGE = "/preferences/security/"


@page_view("GET")
def security_page(request: UserRequest) -> HttpResponse:
    context = {
        "now": db_now(),
        "factors": factors.get_factors(request.user),
        "required": factors.is_required(request.user),
        "by_password": request.user.has_usable_password(),
        "linked": links.is_linked(request.user),
        "may_have_emergency_code": emergency_codes.may_have(request.user),
        "emergency_code": emergency_codes.get_current(request.user),
    }
    return render(request, "core/security.html", context)


@page_view("GET", "POST")
@sensitive_post_parameters("code")
def add_app(request: UserRequest) -> HttpResponse:
    """Show the secret of a new authenticator app as a QR code (GET), or check its code (POST)."""
    now = db_now()
    confirmation.require_fresh(request, now)
    if factors.get_factors(request.user).totp_since:
        return redirect(PAGE)
    kept = request.session.get(PENDING) if request.method == "POST" else None
    secret = encryption.decrypt(kept, encryption.SECOND_FACTORS) if kept else generate_totp_secret()
    typed, at = request.POST.get("code", ""), timezone.now()
    if kept and codes.matches_secret(secret, typed, at):
        recovery_codes = factors.add_totp(
            user=request.user, secret=secret, actor=actor_of(request), now=now
        )
        codes.check_code(request.user, typed, at)  # Mark the code as used.
        request.session.pop(PENDING)
        return _finish_adding(request, "Authenticator app added.", recovery_codes)
    wrong = ""
    if request.method == "POST":
        wrong = "Wrong code. Check your phone's clock and try the next code."
    request.session[PENDING] = encryption.encrypt(secret, encryption.SECOND_FACTORS)
    adapter = SecondFactorAdapter()
    picture = adapter.build_totp_svg(adapter.build_totp_url(request.user, secret))
    context = {
        "secret": " ".join(secret[at : at + 4] for at in range(0, len(secret), 4)),
        "picture": base64.b64encode(picture.encode()).decode(),
        "issuer": audit_entries.get_issuer_name(),
        "wrong": wrong,
    }
    return render(request, "core/security_app.html", context, status=422 if wrong else 200)


@page_view("GET", "POST")
def add_passkey(request: UserRequest) -> HttpResponse:
    now = db_now()
    confirmation.require_fresh(request, now)
    wrong = ""
    if request.method == "POST":
        name = request.POST.get("name", "").replace("\x00", "").strip()[:60] or "Passkey"
        try:
            recovery_codes = factors.add_passkey(
                user=request.user,
                name=name,
                credential=passkeys.verify_registration(request.POST.get("credential", "")),
                actor=actor_of(request),
                now=now,
            )
            return _finish_adding(request, f"The passkey {name} added.", recovery_codes)
        except (InvalidInput, Conflict) as error:
            wrong = error.detail
    context = {"options": passkeys.build_registration_options(request.user), "wrong": wrong}
    return render(request, "core/security_passkey.html", context, status=422 if wrong else 200)


@page_view("POST")
def remove(request: UserRequest) -> HttpResponse:
    """Remove the second factor named by the field `factor`: the id of a passkey, or `app`."""
    now = db_now()
    confirmation.require_fresh(request, now, next_url=PAGE)
    chosen = request.POST.get("factor", "")
    if not (chosen == "app" or (chosen.isascii() and chosen.isdigit() and len(chosen) < 19)):
        raise InvalidInput({"factor": ["Give the id of a passkey, or app."]})
    try:
        factors.remove_factor(
            user=request.user,
            factor_id=None if chosen == "app" else int(chosen),
            actor=actor_of(request),
            now=now,
        )
    except Conflict as conflict:
        messages.error(request, conflict.detail)
    else:
        messages.success(request, "Second factor removed.")
    return redirect(PAGE)


@page_view("POST")
def new_codes(request: UserRequest) -> HttpResponse:
    """Replace the recovery codes and show the new ones once."""
    now = db_now()
    confirmation.require_fresh(request, now, next_url=PAGE)
    recovery_codes = factors.replace_codes(user=request.user, actor=actor_of(request), now=now)
    return _show_codes(request, recovery_codes)


def _finish_adding(request: UserRequest, message: str, recovery_codes: list[str]) -> HttpResponse:
    messages.success(request, message)
    return _show_codes(request, recovery_codes) if recovery_codes else redirect(PAGE)


def _show_codes(request: UserRequest, recovery_codes: list[str]) -> HttpResponse:
    shown = [f"{code[:4]} {code[4:]}" for code in recovery_codes]
    title = f"{audit_entries.get_issuer_name()}: recovery codes of {request.user.username}"
    text = base64.b64encode("\n".join([title, "", *shown, ""]).encode()).decode()
    return render(request, "core/security_codes.html", {"codes": shown, "text": text})
