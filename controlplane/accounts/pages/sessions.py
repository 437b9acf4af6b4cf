"""Page of a person's own sessions."""

from datetime import datetime
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render

from controlplane.accounts.models.people import BrowserSession, User
from controlplane.accounts.people import devices, sessions
from controlplane.accounts.people.session_store import is_at_max_age
from controlplane.accounts.requests import UserRequest
from controlplane.core.clock import db_now
from controlplane.core.http.permissions import actor_of
from controlplane.core.http.requests import session_digest
from controlplane.core.page_responses import page_view, redirect_done

PAGE = "/preferences/sessions/"
SHOWN = 50
NO_OTHERS = "You had no other sessions."


@page_view("GET")
def sessions_page(request: UserRequest) -> HttpResponse:
    now = db_now()
    shown, total = list_rows(request.user, request, now)
    context = {"now": now, "rows": shown, "total": total}
    return render(request, "core/sessions.html", context)


@page_view("POST")
def end_session(request: UserRequest) -> HttpResponse:
    """End one session, or with `others` all except the current one."""
    actor, now = actor_of(request), db_now()
    if "others" in request.POST:
        here = request.session.session_key
        ended = sessions.end_all(user=request.user, actor=actor, now=now, but=here)
        text = f"{ended} other session{'' if ended == 1 else 's'} ended." if ended else NO_OTHERS
        return redirect_done(request, text, PAGE)
    which = request.POST.get("session", "").replace("\x00", "")
    sessions.end_session(user=request.user, session_id=which, actor=actor, now=now)
    return redirect_done(request, "Session ended. Its pages close within seconds.", PAGE)


def list_rows(user: User, request: UserRequest, now: datetime) -> tuple[list[dict[str, Any]], int]:
    """Return the last used open sessions of `user`, up to :data:`SHOWN`, and the number of all."""
    here = session_digest(request.session.session_key or "")
    found = BrowserSession.objects.filter(user=user).open(now)
    latest = found.defer("session_data").order_by("-last_seen_at", "pk")[:SHOWN]
    shown = [
        {
            "session": row,
            "device": devices.name_device(row.user_agent),
            "is_this": row.pk == here,
            "ends_anyway": is_at_max_age(row),
        }
        for row in latest
    ]
    return shown, found.count()
