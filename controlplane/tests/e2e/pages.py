"""The console's pages, found by following links, one of each kind."""

import re
from collections import deque
from collections.abc import Iterator
from html import unescape
from urllib.parse import urlsplit

from django.urls import Resolver404, resolve, reverse

from breakers.dead_letters.models import Departure
from controlplane.accounts.models.people import User
from controlplane.core.jobs.models import Job
from switches.models import Ramp
from switches.tests.browsers import browser

_LINK = re.compile(r"<a\b[^>]*?\shref=\"([^\"]+)\"")
# Pages whose tabs and filters show other parts: as many of each as there may be.
_TABS = 6
# What looks different by its state or kind, so that one stands for the others no more.
_SEVERAL = {
    "switch_page",
    "ramp_page",
    "alert_page",
    "letter_page",
    "archived_letter_page",
    "target_new",
}
# What one looks at most, on a bad night: for what is costly to judge on every page there is.
MAIN = (
    "/",
    "/switches/segment/finance/",
    "/switches/engage/",
    "/attention/",
    "/approvals/",
    "/ramps/",
    "/breakers/",
    "/breakers/core/oracle/",
    "/dead-letters/",
    "/slos/",
    "/slos/core-availability/",
    "/reports/weekly/",
    "/runbooks/redis-down/",
    "/audit/",
    "/rules/",
    "/trips/",
    "/targets/",
    "/deliveries/",
    "/people/",
    "/tokens/",
    "/preferences/",
    "/preferences/security/",
    "/preferences/sessions/",
    "/find/?q=finance",
)
_ELSEWHERE = ("/admin/", "/api/", "/static/", "/metrics", "/health/", "/sign-out/")


def by_itself() -> dict[str, str]:
    """Paths of what no link of this night leads to, by the name of their view."""
    dependency, switch = ["core", "vision"], ["experiment", "ranker-b"]
    archived = Departure.objects.filter(action="discard").latest("pk")
    return {
        "confirm": reverse("confirm"),
        "samples_clear": reverse("samples_clear"),
        "override_remove": reverse("override_remove", args=dependency),
        "reconfirm": reverse("reconfirm", args=switch),
        "ramp_resume": reverse("ramp_resume", args=[Ramp.objects.latest("pk").pk]),
        "job_resume": reverse("job_resume", args=[Job.objects.latest("pk").pk]),
        "person_factors": reverse("person_factors", args=[User.objects.latest("pk").pk]),
        "event_deliveries": reverse("event_deliveries"),
        "lost_changes": reverse("lost_changes"),
        "archived_letter_reveal": reverse("archived_letter_reveal", args=[archived.pk]),
    }


def find_pages(user: User) -> dict[str, list[str]]:
    """Return paths by the name of their view, found by following links; HTML pages only."""
    seen: dict[str, list[str]] = {}
    for name, path, _html in followed(user):
        seen.setdefault(name, []).append(path)
    return seen


def followed(user: User, start: str = "/") -> Iterator[tuple[str, str, str]]:
    """Yield the view's name, the path and the HTML of each page that :func:`find_pages` finds."""
    client = browser(user)
    seen: dict[str, list[str]] = {}
    wanted, known = deque([start]), {start}
    while wanted:
        path = wanted.popleft()
        name = _name(path)
        if name is None or not _is_new(seen.get(name, []), path):
            continue
        answer = client.get(path)
        if answer.status_code != 200 or "text/html" not in answer.headers["Content-Type"]:
            continue
        seen.setdefault(name, []).append(path)
        html = answer.content.decode()
        yield name, path, html
        for link in _links(html, path):
            if link not in known:
                known.add(link)
                wanted.append(link)


def _links(html: str, path: str) -> Iterator[str]:
    for href in _LINK.findall(html):
        target = urlsplit(unescape(href))
        if target.scheme or target.netloc:
            continue
        where = target.path or urlsplit(path).path
        if where.startswith("/") and not where.startswith(_ELSEWHERE):
            yield where + (f"?{target.query}" if target.query else "")


def _name(path: str) -> str | None:
    try:
        return resolve(urlsplit(path).path).url_name
    except Resolver404:
        return None


def _is_new(known: list[str], path: str) -> bool:
    """The first of its kind, its tabs, and others of a kind that differ among themselves."""
    if len(known) >= _TABS:
        return False
    here = urlsplit(path)
    same = [one for one in known if urlsplit(one).path == here.path]
    if not known:
        return True
    if same:
        return bool(here.query) and "cursor=" not in here.query
    return resolve(here.path).url_name in _SEVERAL
