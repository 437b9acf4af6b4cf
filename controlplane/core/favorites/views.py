"""The star button, which works as a plain form and by htmx."""

from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme

from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict, NotFound
from controlplane.core.favorites import services
from controlplane.core.page_responses import PersonRequest, page_view, show_refusal


@page_view("POST")
def favorite(request: PersonRequest, kind: str, key: str) -> HttpResponse:
    """Star the object, or unstar it if `starred` is 0."""
    is_starred = request.POST.get("starred") != "0"
    user_id = request.user.pk
    try:
        found = services.find_object(kind, key)
        if is_starred:
            services.add_favorite(user_id=user_id, kind=kind, key=key, now=db_now())
        else:
            services.remove_favorite(user_id=user_id, kind=kind, key=key)
    except NotFound as error:
        raise Http404 from error
    except Conflict as error:
        return show_refusal(request, "Not added", error, "switchboard")
    if request.htmx:
        return render(request, "_star.html", {"kind": kind, "key": key, "title": found.title})
    return redirect(_get_previous_page(request) or found.path)


def _get_previous_page(request: PersonRequest) -> str:
    """Return the URL of the page with the button, "" if the browser doesn't send it."""
    url = request.headers.get("Referer", "")
    hosts = {request.get_host()}
    is_own = url_has_allowed_host_and_scheme(url, hosts, require_https=request.is_secure())
    return url if is_own else ""
