"""Helpers of page views: authentication, and responses as a page or inside the dialog."""

import re
from collections.abc import Callable, Collection
from functools import wraps
from hashlib import blake2b
from typing import Any, Concatenate, ParamSpec, TypeVar, cast
from urllib.parse import urlsplit

import orjson
from django.contrib import messages
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.utils.cache import patch_vary_headers
from django.utils.timezone import get_current_timezone_name
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods
from django_htmx.http import HttpResponseClientRedirect, trigger_client_event
from django_htmx.middleware import HtmxDetails

from controlplane import __version__

from .actors import Person
from .canonical import timestamp
from .errors import DomainError

P = ParamSpec("P")
DIALOG = "dialog-body"
DIGEST_HEADER = "Switchgear-Digest"
# What the browser keeps up to date itself, isn't visible or is random: the server's time, ages and
# countdowns (but not the moments that they count from), attributes of times and CSRF tokens.
_TICKING = re.compile(
    rb'data-now="\d+"|data-as-of="\d+".*?</time>|csrfmiddlewaretoken" value="\w*'
    rb'|<time [^>]*>|(data-(?:since|until)="\d+"[^>]*>)[^<]*',
    re.DOTALL,
)


class PersonRequest(HttpRequest):
    """A request of a signed-in user, for type checking."""

    user: Person  # type: ignore[assignment]
    htmx: HtmxDetails


R = TypeVar("R", bound=PersonRequest)
View = Callable[Concatenate[R, P], HttpResponse]
Guarded = Callable[Concatenate[HttpRequest, P], HttpResponse]


def signed_in(view: View[R, P]) -> Guarded[P]:
    """Decorate a page view to redirect anonymous users to the sign-in page; htmx gets 401."""

    @wraps(view)
    def guarded_view(request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        if request.user.is_authenticated:
            return view(request, *args, **kwargs)  # type: ignore[arg-type]
        if request.htmx:  # type: ignore[attr-defined]
            return HttpResponse(status=401)
        # A POST can't be resumed after signing in, so there is no page to return to.
        return redirect_to_login(request.get_full_path() if request.method == "GET" else "/")

    return cast("Guarded[P]", never_cache(guarded_view))


def page_view(*methods: str) -> Callable[[View[R, P]], Guarded[P]]:
    """Return a decorator for page views: requires a signed-in user and one of the HTTP methods."""

    def decorate(view: View[R, P]) -> Guarded[P]:
        return signed_in(require_http_methods(methods)(view))

    return decorate


def is_in_dialog(request: PersonRequest) -> bool:
    return bool(request.htmx) and request.htmx.target == DIALOG


def show(
    request: PersonRequest, template: str, context: dict[str, Any], *, status: int = 200
) -> HttpResponse:
    """Render a template as a whole page or, if the request comes from the dialog, inside that.

    The template extends the variable `layout`.
    """
    dialog = is_in_dialog(request)
    layout = "dialog.html" if dialog else "page.html"
    response = render(
        request, template, {**context, "layout": layout, "dialog": dialog}, status=status
    )
    patch_vary_headers(response, ["HX-Request", "HX-Target"])
    return response


def render_live(
    request: PersonRequest, template: str, context: dict[str, Any], *, shown: object = None
) -> HttpResponse:
    """Render a template, and send the context's `now` in a header for the page's countdowns.

    A refresh that would change nothing gets 204: its header names the digest of what it shows. That
    is the digest of the rendered content or, to save the rendering, of `shown`: all data that the
    template shows and that doesn't follow from the request, as JSON types or dataclasses. The
    template then gets the updates of alarm bar and navigation as `header_updates`.
    """
    response = None
    if request.htmx and shown is not None:
        updates = render_to_string("_header_updates.html", {"oob": True}, request)
        context = {**context, "header_updates": updates}
        digest = _digest(updates.encode(), _describe_page(request, template, shown))
    else:
        response = render(request, template, context)
        digest = _digest(response.content) if request.htmx else ""
    if digest and digest == request.headers.get(DIGEST_HEADER):
        response = HttpResponse(status=204)
    elif response is None:
        response = render(request, template, context)
    if digest:
        response[DIGEST_HEADER] = digest
    response["Switchgear-Now"] = timestamp(context["now"])
    return response


def _digest(content: bytes, page: bytes = b"") -> str:
    return blake2b(_TICKING.sub(rb"\1", content) + page, digest_size=12).hexdigest()


def _describe_page(request: PersonRequest, template: str, shown: object) -> bytes:
    """Return what a part of a page depends on: release, template, address, viewer and `shown`."""
    viewer = [request.user.pk, request.user.role, get_current_timezone_name()]
    page = [__version__, template, request.get_full_path(), viewer, shown]
    return orjson.dumps(page, option=orjson.OPT_NON_STR_KEYS)


def show_refusal(
    request: PersonRequest, heading: str, error: DomainError, back: str, *, status: int = 0
) -> HttpResponse:
    """Show an error page that says why a change was refused, with a link to the page `back`."""
    context = {"heading": heading, "detail": error.detail, "back": back}
    return show(request, "core/notice.html", context, status=status or error.status)


def respond_done(
    request: PersonRequest,
    message: str,
    url: str,
    *,
    shown_on: Collection[str] = (),
    waits: bool = False,
) -> HttpResponse:
    """Respond to a successful change with a message.

    An htmx request gets it as a client-side event, another one as a redirect to `url`. The pages
    with the paths `shown_on` show the result themselves, so there the message is only read out.
    `waits` is True if the change is only requested and waits for approval.
    """
    if request.htmx:
        is_shown = bool(shown_on) and urlsplit(request.htmx.current_url or "").path in shown_on
        detail = {"message": message, "shown": is_shown, "waits": waits}
        return trigger_client_event(HttpResponse(status=204), "switchgear:done", detail)
    messages.success(request, message)
    return redirect(url)


def redirect_done(request: PersonRequest, message: str, url: str) -> HttpResponse:
    """Respond to a change by a redirect to `url`, even for htmx, with a success message."""
    messages.success(request, message)
    return HttpResponseClientRedirect(url) if request.htmx else redirect(url)
