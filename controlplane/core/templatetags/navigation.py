"""Template tags of the navigation: current section, counts, and links to other pages of a list."""

from typing import Any
from urllib.parse import urlsplit

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from controlplane.core.console_urls import DOCUMENTATION_PATH
from controlplane.core.protocol import EMERGENCY_PAGE

register = template.Library()

CURRENT = mark_safe(' aria-current="page"')
_SECTIONS = {"": "switches", "reviews": "approvals", "routes": "targets"}
"""Sections that aren't named like the first part of the path, by that part."""


@register.simple_tag(takes_context=True)
def current(context: dict[str, Any], section: str) -> SafeString | str:
    """Return `aria-current="page"` as HTML if the page shown belongs to `section`, else ""."""
    request = context.get("request")
    if request is None:
        return ""
    # A part of a page, such as the alarm bar, is requested from the page that shows it.
    htmx = getattr(request, "htmx", None)
    path = (htmx and htmx.current_url_abs_path) or request.path
    return CURRENT if find_section(path) == section else ""


@register.simple_tag
def documentation_url(page: str = "") -> str:
    """Return the path of a page of the documentation, such as `recover/`; it has no URL pattern."""
    return f"{DOCUMENTATION_PATH}{page}"


@register.simple_tag
def emergency_url() -> str:
    """Return the path of the emergency page, which the data plane serves; it has no URL pattern."""
    return EMERGENCY_PAGE


@register.simple_tag
def nav_count(
    number: int | None, words: str, tone: str = "", is_complete: bool = True
) -> SafeString | str:
    """Render the count beside a link, with `words` for screen readers; nothing if it is 0.

    A count that could not be read, or only in part, is shown as `?` or `3+`.
    """
    if number is None or not is_complete:
        text = f"{number}+" if number else "?"
        words = f"or more {words}" if number else "number unknown"
    elif number:
        text = f"{number:,}"
    else:
        return ""
    return format_html(
        '<span class="count{}">{}<span class="visually-hidden"> {}</span></span>',
        f" count--{tone}" if tone else "",
        text,
        words,
    )


@register.inclusion_tag("core/_pages.html", takes_context=True)
def pages(
    context: dict[str, Any],
    number: int,
    has_next: object,
    parameter: str = "page",
    anchor: str = "",
) -> dict[str, str]:
    """Render the links to the previous and the next page of a list that shows page `number`.

    `parameter` is the query parameter with the number of the page; `anchor` may be `#routes`.
    """

    def build_url(page: int) -> str:
        return _build_url(context, parameter, page, anchor)

    return {
        "previous": build_url(number - 1) if number > 1 else "",
        "next": build_url(number + 1) if has_next else "",
    }


@register.inclusion_tag("core/_older.html", takes_context=True)
def older_pages(
    context: dict[str, Any], older: object, parameter: str = "before", anchor: str = ""
) -> dict[str, str]:
    """Render the links to the newest and to older entries of a list.

    `older` is the value of the query parameter for the next page, if there is one.
    """
    is_newest = not context["request"].GET.get(parameter)
    return {
        "newest": "" if is_newest else _build_url(context, parameter, None, anchor),
        "older": _build_url(context, parameter, older, anchor) if older else "",
    }


def _build_url(context: dict[str, Any], parameter: str, value: object, anchor: str) -> str:
    """Return the present URL's query and `anchor` with another value of a query parameter."""
    request = context["request"]
    query = request.GET.copy()
    query.pop(parameter, None)
    if getattr(request, "htmx", None):
        query.pop("since", None)  # the poll token of a refresh
    if value:
        query[parameter] = value
    return f"?{query.urlencode()}{anchor}"


def find_section(path: str) -> str:
    """Return the section of the navigation that a path belongs to: `alerts` for `/alerts/7/`."""
    first = urlsplit(path).path.strip("/").partition("/")[0]
    return _SECTIONS.get(first, first)
