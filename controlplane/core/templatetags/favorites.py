"""Template tag for the star button of a favorite."""

from urllib.parse import quote

from django import template
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from controlplane.core.favorites.services import load_viewer_keys
from controlplane.core.templatetags.screen import icon

register = template.Library()


@register.simple_tag(takes_context=True)
def star(context: template.Context, kind: str, key: str, title: str = "") -> SafeString:
    """Render the button that stars or unstars an object, named by `title` or else its key.

    The viewer's favorites are read once for each request.
    """
    is_starred = key in load_viewer_keys(context["request"]).get(kind, ())
    # A template would be slow, and lists have many stars.
    return format_html(
        '<form class="star" method="post" action="{action}" hx-post="{action}" hx-target="this" '
        'hx-swap="outerHTML" hx-sync="#live:replace">'
        '<input type="hidden" name="csrfmiddlewaretoken" value="{csrf_token}">'
        '<input type="hidden" name="starred" value="{wanted}">'
        '<button class="button button--plain button--icon" id="star-{kind}-{id}" '
        'aria-pressed="{pressed}" title="{hint}">'
        '{icon}<span class="visually-hidden">Favorite <bdi>{title}</bdi></span></button></form>',
        action=reverse("favorite", args=[kind, key]),
        csrf_token=context.get("csrf_token", ""),
        wanted="0" if is_starred else "1",
        kind=kind,
        id=quote(key, safe=""),
        pressed="true" if is_starred else "false",
        hint="Remove from favorites" if is_starred else "Add to favorites",
        icon=icon("star"),
        title=title or key,
    )
