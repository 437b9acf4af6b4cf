"""URL patterns with and without a trailing slash."""

from collections.abc import Callable
from urllib.parse import quote

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import URLPattern, path
from django.views.decorators.csrf import csrf_exempt

View = Callable[..., HttpResponseBase]


def both_forms(route: str, view: View, *, name: str) -> list[URLPattern]:
    """Return URL patterns for `route` with and without its trailing slash.

    Of the two, the form that isn't `route` redirects GET to `route`; other methods work directly.
    """
    other = route.removesuffix("/") if route.endswith("/") else f"{route}/"
    return [path(route, view, name=name), path(other, _other_form(view))]


def _other_form(view: View) -> View:
    # A plain function, so that the OpenAPI document lists each path once. CSRF is checked by the
    # API's own authentication, as for every API view.
    @csrf_exempt
    def other_form(request: HttpRequest, **arguments: str) -> HttpResponseBase:
        if request.method not in {"GET", "HEAD"}:
            return view(request, **arguments)
        own = request.path.removesuffix("/") if request.path.endswith("/") else f"{request.path}/"
        query = request.META.get("QUERY_STRING", "")
        location = quote(own) + (f"?{query}" if query else "")
        return HttpResponse(status=308, headers={"Location": location})

    return other_form
