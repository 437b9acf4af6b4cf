"""Showing again who one is: a page of its own, or inside the dialog that is about to open."""

from django.conf import settings
from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from controlplane.accounts.authentication import factors, links, passkeys, throttle, trail
from controlplane.accounts.requests import UserRequest
from controlplane.core.clock import db_now
from controlplane.core.errors import DomainError, InvalidInput, TooManyRequests
from controlplane.core.http import confirmation
from controlplane.core.http.permissions import actor_of
from controlplane.core.page_responses import show, signed_in

from .sign_in import note_failure, prove, safe_next


@signed_in
@sensitive_post_parameters("password", "code", "credential")
@require_http_methods(["GET", "POST"])
def confirm(request: UserRequest) -> HttpResponse:
    """Ask for a second factor if there is one, else for the password or the provider's sign-in.

    With a second factor, the password isn't enough: it may be known to somebody at an open browser.
    """
    error: DomainError | None = None
    have = factors.of(request.user)
    if request.method == "POST":
        name = throttle.confirming_name(request.user)
        if not throttle.is_allowed(request, name):
            return throttle.locked_out(request, credentials={"username": name})
        error = _proved(request, have, name)
        if error is None:
            now = db_now()
            throttle.forget(request, name)
            confirmation.record_confirmation(request, now.timestamp())
            trail.note("session.confirmed", user=request.user, actor=actor_of(request), now=now)
            return redirect(safe_next(request))
    context = {
        "next": safe_next(request),
        "error": error,
        "factors": have,
        "by_password": request.user.has_usable_password() and not have.any,
        "options": passkeys.to_show(request.user) if have.passkeys else "",
        "provider": settings.OIDC.name if links.is_linked(request.user) else "",
    }
    status = error.status if isinstance(error, TooManyRequests) else 422 if error else 200
    return show(request, "core/confirm.html", context, status=status)


def _proved(request: UserRequest, have: factors.Factors, name: str) -> DomainError | None:
    if have.any or "password" not in request.POST:
        return prove(request, request.user, name)
    if request.user.check_password(request.POST["password"]):
        return None
    throttle.failed(request, name)
    note_failure(request, request.user.username)
    return InvalidInput({"password": ["That is not your password."]})
