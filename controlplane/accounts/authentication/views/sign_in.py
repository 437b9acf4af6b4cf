"""Pages to sign in, in stages, and to sign out."""

from contextlib import suppress
from typing import Any

from allauth.account.internal.flows.login import perform_login, record_authentication
from allauth.account.internal.stagekit import clear_login
from allauth.account.models import Login
from allauth.account.stages import LoginStageController
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import logout
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_protect
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from controlplane.accounts.authentication import adapters, codes, factors, passkeys, throttle
from controlplane.accounts.models.people import User
from controlplane.accounts.people import sessions
from controlplane.accounts.people.forms import SignInForm
from controlplane.core.clock import db_now
from controlplane.core.errors import DomainError, InvalidInput, TooManyRequests
from controlplane.core.http.permissions import actor_of
from controlplane.core.http.requests import client_ip, request_id_of


class SignIn(LoginView):
    template_name = "registration/sign_in.html"
    authentication_form = SignInForm
    redirect_authenticated_user = True
    http_method_names = ["get", "head", "post", "options"]

    def get_context_data(self, **more: Any) -> dict[str, Any]:
        return super().get_context_data(
            provider=settings.OIDC.name if settings.OIDC.issuer else "",
            resets=bool(settings.EMAIL.host),
            **more,
        )

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        name = throttle.read_username(request)
        throttle.count_attempt(request, name)
        with throttle.limit_hashing():
            # Checked first, so that an attempt while locked out does not prolong the lockout.
            if not throttle.is_allowed(request, name):
                return throttle.locked_out(request)
            return super().post(request, *args, **kwargs)

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        next_url = self.get_success_url()
        return continue_sign_in(self.request, form.get_user(), method="password", next_url=next_url)

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        if form.non_field_errors():
            record_failure(self.request, form.cleaned_data.get("username", ""))
        response = super().form_invalid(form)
        response.status_code = 422
        return response


def continue_sign_in(
    request: HttpRequest, user: User, *, method: str, next_url: str, **more: Any
) -> HttpResponse:
    """Go to the next sign-in stage, or complete the sign-in. The session gets a new key."""
    request.session.cycle_key()
    record_authentication(request, user, method, **more)
    response: HttpResponse = perform_login(request, Login(user=user, redirect_url=next_url))
    return response


@never_cache
@sensitive_post_parameters("code", "credential")
@csrf_protect
@require_http_methods(["GET", "POST"])
def second_factor(request: HttpRequest) -> HttpResponse:
    """Show the second stage of signing in (GET), or check its code or passkey (POST)."""
    stage = LoginStageController.enter(request, adapters.SECOND_FACTOR)
    if not isinstance(stage, adapters.SecondFactorStage) or not stage.is_open():
        clear_login(request)
        return redirect("login")
    user: User = stage.login.user
    error: DomainError | None = None
    if request.method == "POST":
        if not throttle.is_allowed(request, user.username):
            clear_login(request)
            return throttle.locked_out(request, credentials={"username": user.username})
        error = check_second_factor(request, user, user.username)
        if error is None:
            request.session.cycle_key()
            response: HttpResponse = stage.exit()
            return response
    have = factors.get_factors(user)
    context = {
        "person": user,
        "factors": have,
        "error": error,
        "options": passkeys.build_challenge(user) if have.passkeys else "",
    }
    status = error.status if isinstance(error, TooManyRequests) else 422 if error else 200
    return render(request, "registration/second_factor.html", context, status=status)


def check_second_factor(request: HttpRequest, user: User, name: str) -> DomainError | None:
    """Return None for a valid code or passkey, else the error, counted as a failure of `name`."""
    try:
        if "credential" in request.POST:
            passkey = passkeys.verify_authentication(request.POST["credential"], user)
            passkey.record_usage()
            record_authentication(request, user, "mfa", id=passkey.pk, type=passkey.type)
            return None
        kind = codes.check_code(user, request.POST.get("code", ""), timezone.now())
        if kind:
            record_authentication(request, user, "mfa", type=kind)
            return None
    except TooManyRequests as error:
        return error
    except InvalidInput:
        pass
    throttle.count_failure(request, name)
    record_failure(request, user.username)
    text = passkeys.REFUSED if "credential" in request.POST else "Wrong code."
    return InvalidInput({"code": [text]})


@never_cache
@csrf_protect
@require_http_methods(["GET", "POST"])
def sign_in_by_passkey(request: HttpRequest) -> HttpResponse:
    """Return a WebAuthn challenge (GET), or check the browser's response and sign in (POST)."""
    if request.user.is_authenticated:
        return redirect("/")
    if request.method == "GET":
        throttle.begin_anonymous_session(request, timezone.now())
        return HttpResponse(passkeys.build_challenge(None), content_type="application/json")
    throttle.count_attempt(request)
    passkey = None
    with suppress(InvalidInput):
        passkey = passkeys.verify_authentication(request.POST.get("credential", ""), None)
    if passkey is None or not passkey.user.is_active:
        record_failure(request, "")
        messages.error(request, passkeys.REFUSED)
        return redirect("login")
    passkey.record_usage()
    return continue_sign_in(
        request, passkey.user, method="mfa", next_url=get_safe_next(request),
        id=passkey.pk, type=passkey.type, passwordless=True,
    )  # fmt: skip


@never_cache
@require_GET
def cancel_sign_in(request: HttpRequest) -> HttpResponse:
    clear_login(request)
    return redirect("login")


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    """End the visitor's session, if they are signed in."""
    if request.user.is_authenticated:
        sessions.record_sign_out(actor=actor_of(request), now=db_now())
    logout(request)
    messages.success(request, "Signed out.")
    return redirect(settings.LOGOUT_REDIRECT_URL)


def record_failure(request: HttpRequest, username: str) -> None:
    sessions.record_failure(
        username=username, request_id=request_id_of(request), ip=client_ip(request), now=db_now()
    )


def get_safe_next(request: HttpRequest) -> str:
    """Return the path to continue with: the parameter `next` if it is on this site, else `/`."""
    url = request.POST.get("next") or request.GET.get("next") or ""
    is_own = url_has_allowed_host_and_scheme(url, {request.get_host()}, request.is_secure())
    return url if is_own and url.startswith("/") else "/"
