"""Error responses: HTML pages in the browser, problem+json on API paths.

Includes Django's handlers for errors outside of views: unknown paths, CSRF failures, exceptions in
middleware.
"""

import sys
from typing import Any

from django.db import DatabaseError, InterfaceError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template import loader
from django.utils.cache import add_never_cache_headers

from controlplane.core import authority, problem
from controlplane.core.console_urls import SCIM_ROOT
from controlplane.core.errors import ConfirmFirst, DomainError, Forbidden, InternalError, NotFound
from controlplane.core.http import problems
from controlplane.core.http.requests import is_api, request_id_of
from controlplane.core.page_responses import DIALOG
from controlplane.core.roles import Power


def render_error(request: HttpRequest, error: DomainError) -> HttpResponse:
    """Return the error's response: JSON on paths of the API and of SCIM, else a page."""
    if is_api(request) or request.path.startswith(SCIM_ROOT):
        return problems.build_problem_response(error, request.path)
    if isinstance(error, ConfirmFirst):
        return redirect(error.confirm_url)  # htmx follows it in the dialog.
    return render_page(request, error)


def render_page(request: HttpRequest, error: DomainError) -> HttpResponse:
    """Render `<status>.html` if it exists, else `error.html`.

    Signed-in people get the normal page frame, unless the database is unavailable. The dialog gets
    a :class:`Forbidden` in its own frame.
    """
    template: Any = loader.select_template([f"{error.status}.html", "error.html"])
    context = {"error": error, "request": request, "request_id": request_id_of(request)}
    html = _render_framed(template, context, request, error)
    if html is None:
        # Without a request, the context processors don't query the session and the switches.
        html = template.render({**context, "layout": "bare.html"})
    response = HttpResponse(html, status=error.status, headers=problem.problem_headers(error))
    add_never_cache_headers(response)
    return problems.suppress_log(response)


def _render_framed(
    template: Any, context: dict[str, Any], request: HttpRequest, error: DomainError
) -> str | None:
    """Return the page with navigation, or the dialog's content.

    Return None if nobody is signed in, the database is down, or htmx asks for something else.
    """
    htmx: Any = getattr(request, "htmx", None)
    dialog = bool(htmx) and htmx.target == DIALOG and isinstance(error, Forbidden)
    if error.status >= InternalError.status or (htmx and not dialog):
        return None
    try:
        user = getattr(request, "user", None)
        if user is None or not user.is_authenticated:
            return None
        if isinstance(error, Forbidden):
            admins = authority.holders_of(Power.ADMINISTER)
            able = authority.names_with_permission(error.extra)
            on_call = authority.find_on_call(error.extra)
            context = {**context, "admins": admins, "able": able, "on_call": on_call}
        layout = "dialog.html" if dialog else "base.html"
        return str(template.render({**context, "layout": layout}, request))
    except (DatabaseError, InterfaceError):
        return None


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    error = problems.as_domain_error(exception)
    return render_error(request, error or DomainError("The request could not be read."))


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    return render_error(request, Forbidden(str(exception) or "You have no permission for this."))


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return render_error(request, NotFound(f"There is no page at {request.path}."))


def csrf_failed(request: HttpRequest, reason: str = "") -> HttpResponse:
    text = f"The form's security check failed: {reason} Reload the page and send it again."
    return render_error(request, Forbidden(text))


def server_error(request: HttpRequest) -> HttpResponse:
    """Render the response to an unhandled exception.

    Django calls this inside its `except` block, without the exception.
    """
    exc = sys.exc_info()[1]
    error = problems.as_domain_error(exc) if exc is not None else None
    text = (
        "The request failed on our side and was logged. Repeat it with the same "
        "Idempotency-Key; if it fails again, report the request id."
    )
    return render_error(request, error or InternalError(text))
