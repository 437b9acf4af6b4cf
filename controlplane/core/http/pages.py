"""Error responses: a page in the browser, problem+json on the API's paths.

Also Django's handlers for errors outside a view: an unknown path, a refused form, or a middleware
that could not reach the database.
"""

import sys
from typing import Any

from django.db import DatabaseError, InterfaceError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template import loader
from django.utils.cache import add_never_cache_headers

from controlplane.core import authority, problem
from controlplane.core.errors import Broken, ConfirmFirst, DomainError, Forbidden, NotFound
from controlplane.core.http import problems
from controlplane.core.http.requests import is_api, request_id_of
from controlplane.core.roles import Power


def answer(request: HttpRequest, error: DomainError) -> HttpResponse:
    """Return the error in the format that the request's caller accepts."""
    if isinstance(error, ConfirmFirst) and not is_api(request):
        return redirect(error.confirm_url)  # From the dialog, htmx follows it into the dialog.
    return problems.respond(error) if is_api(request) else page(request, error)


def page(request: HttpRequest, error: DomainError) -> HttpResponse:
    """Render `<status>.html` if it exists, else `error.html`; neither may need the database.

    Signed-in people get the normal page frame with its alarms, if the data is available.
    """
    html = _framed(request, error) or _alone(request, error)
    response = HttpResponse(html, status=error.status, headers=problem.headers(error))
    add_never_cache_headers(response)
    return problems.quietly(response)


def _framed(request: HttpRequest, error: DomainError) -> str:
    """Return the page in its frame; empty if nobody is signed in, or the session is unavailable."""
    if error.status >= Broken.status or getattr(request, "htmx", False):
        return ""
    try:
        user = getattr(request, "user", None)
        if user is None or not user.is_authenticated:
            return ""
        context = {**_said(request, error), "layout": "base.html"}
        if isinstance(error, Forbidden):
            context |= {
                "admins": authority.holders_of(Power.ADMINISTER),
                "able": authority.able(error.extra),
            }
        return str(_template(error).render(context, request))
    except (DatabaseError, InterfaceError):
        return ""


def _alone(request: HttpRequest, error: DomainError) -> str:
    """Render without the context processors, which query the session and engaged switches."""
    return str(_template(error).render({**_said(request, error), "layout": "bare.html"}))


def _template(error: DomainError) -> Any:
    return loader.select_template([f"{error.status}.html", "error.html"])


def _said(request: HttpRequest, error: DomainError) -> dict[str, Any]:
    return {"error": error, "request": request, "request_id": request_id_of(request)}


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    error = problems.as_domain_error(exception)
    return answer(request, error or DomainError("The request could not be read."))


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    return answer(request, Forbidden(str(exception) or "You may not do this."))


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return answer(request, NotFound(f"Nothing is at {request.path}."))


def csrf_failed(request: HttpRequest, reason: str = "") -> HttpResponse:
    return answer(
        request,
        Forbidden(f"The form could not be trusted: {reason} Reload the page and send it again."),
    )


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer an unhandled exception: Django calls this inside its `except`, without arguments."""
    exc = sys.exc_info()[1]
    error = problems.as_domain_error(exc) if exc is not None else None
    return answer(
        request,
        error
        or Broken(
            "The request failed on our side and was logged. Repeat it with the same "
            "Idempotency-Key; if it fails again, tell us the request id."
        ),
    )
