"""Views of the security page's emergency code: create or replace it, show it once, revoke it."""

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_variables

from controlplane.accounts.emergency_codes import services
from controlplane.accounts.requests import UserRequest
from controlplane.core.clock import db_now
from controlplane.core.console_urls import console_url
from controlplane.core.http.confirmation import require_fresh
from controlplane.core.http.permissions import actor_of
from controlplane.core.page_responses import page_view, redirect_done
from controlplane.core.protocol import EMERGENCY_PAGE

from .security import PAGE

REVOKED = "Emergency code revoked. Data planes refuse it as soon as they read the change."


@page_view("GET", "POST")
@sensitive_variables("code")
def create_code(request: UserRequest) -> HttpResponse:
    """Create or replace the person's emergency code; the response shows it once.

    A GET, such as of a tab that the browser restores, leads to the security page.
    """
    if request.method == "GET":
        return redirect(PAGE)
    now = db_now()
    require_fresh(request, now, next_url=PAGE)
    code = services.create_code(user=request.user, actor=actor_of(request), now=now)
    page_url = console_url(EMERGENCY_PAGE) or request.build_absolute_uri(EMERGENCY_PAGE)
    context = {"code": code, "created_at": now, "page_url": page_url}
    return render(request, "core/security_emergency_code.html", context)


@page_view("POST")
def revoke_code(request: UserRequest) -> HttpResponse:
    now = db_now()
    require_fresh(request, now, next_url=PAGE)
    services.revoke_code(user=request.user, actor=actor_of(request), now=now)
    return redirect_done(request, REVOKED, PAGE)
