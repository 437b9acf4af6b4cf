"""Template tag for the star button of a favorite."""

from typing import Any

from django import template
from django.urls import reverse

from controlplane.core.favorites.services import load_viewer_keys

register = template.Library()


@register.inclusion_tag("_star.html", takes_context=True)
def star(context: template.Context, kind: str, key: str, title: str = "") -> dict[str, Any]:
    """Render the button that stars or unstars an object, named by `title` or else its key.

    The viewer's favorites are read once for each request.
    """
    favorites = load_viewer_keys(context["request"])
    return {
        "action": reverse("favorite", args=[kind, key]),
        "kind": kind,
        "key": key,
        "title": title or key,
        "is_starred": key in favorites.get(kind, ()),
        "csrf_token": context.get("csrf_token"),
    }
