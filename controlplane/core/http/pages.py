"""Errors as a person sees them: a page in the browser, problem+json on the API's paths.

These are also Django's handlers for what happens outside a view: an unknown path, a refused form,
a middleware that could not reach the database.
"""

import sys

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template import loader
from django.utils.cache import add_never_cache_headers

from controlplane.core import problem
from controlplane.core.errors import Broken, ConfirmFirst, DomainError, Forbidden, NotFound
from controlplane.core.http import problems
from controlplane.core.http.requests import is_api, request_id_of


def answer(request: HttpRequest, error: DomainError) -> HttpResponse:
    """The error in the form this request's caller can read."""
    if isinstance(error, ConfirmFirst) and not is_api(request):
        return redirect(error.confirm_url)  # From the dialog, htmx follows it into the dialog.
    return problems.respond(error) if is_api(request) else page(request, error)


def page(request: HttpRequest, error: DomainError) -> HttpResponse:
    """`<status>.html` if there is one, else `error.html`; neither may need the database."""
    template = loader.select_template([f"{error.status}.html", "error.html"])
    # Without the context processors, which look up the session and what is engaged.
    context = {"error": error, "request": request, "request_id": request_id_of(request)}
    response = HttpResponse(
        template.render(context), status=error.status, headers=problem.headers(error)
    )
    add_never_cache_headers(response)
    return problems.quietly(response)


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
    """Django calls this inside the `except` of what happened, and has no argument for it."""
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
