"""Page or dialog in which a signed-in person confirms their identity again."""

from django.conf import settings
from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.debug import sensitive_post_parameters

from controlplane.accounts.authentication import audit_entries, factors, links, passkeys, throttle
from controlplane.accounts.requests import UserRequest
from controlplane.core.clock import db_now
from controlplane.core.errors import DomainError, InvalidInput, TooManyRequests
from controlplane.core.http import confirmation
from controlplane.core.http.permissions import actor_of
from controlplane.core.page_responses import page_view, show

from .sign_in import check_second_factor, get_safe_next, record_failure


@page_view("GET", "POST")
@sensitive_post_parameters("password", "code", "credential")
def confirm(request: UserRequest) -> HttpResponse:
    """Ask for the person's second factor, or for the password if they have none, and check it."""
    error: DomainError | None = None
    have = factors.get_factors(request.user)
    if request.method == "POST":
        name = throttle.get_confirmation_name(request.user)
        if not throttle.is_allowed(request, name):
            return throttle.locked_out(request, credentials={"username": name})
        error = _check_proof(request, have, name)
        if error is None:
            now = db_now()
            throttle.reset_failures(request, name)
            confirmation.record_confirmation(request, now.timestamp())
            audit_entries.record_event(
                "session.confirmed", user=request.user, actor=actor_of(request), now=now
            )
            return redirect(get_safe_next(request))
    context = {
        "next": get_safe_next(request),
        "error": error,
        "factors": have,
        "by_password": request.user.has_usable_password() and not have.any,
        "options": passkeys.build_challenge(request.user) if have.passkeys else "",
        "provider": settings.OIDC.name if links.is_linked(request.user) else "",
    }
    status = error.status if isinstance(error, TooManyRequests) else 422 if error else 200
    return show(request, "core/confirm.html", context, status=status)


def _check_proof(request: UserRequest, have: factors.Factors, name: str) -> DomainError | None:
    if have.any or "password" not in request.POST:
        return check_second_factor(request, request.user, name)
    if request.user.check_password(request.POST["password"]):
        return None
    throttle.count_failure(request, name)
    record_failure(request, request.user.username)
    return InvalidInput({"password": ["Wrong password."]})
