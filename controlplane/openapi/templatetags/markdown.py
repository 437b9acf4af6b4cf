"""Template filter that renders the Markdown of the OpenAPI document."""

from functools import cache

from django import template
from django.utils.safestring import SafeString

from controlplane.core.runbooks.markdown import render_html

register = template.Library()


@register.filter
@cache  # The texts come from the source code, and most of them repeat.
def markdown(text: str) -> SafeString:
    """Render Markdown to HTML; raw HTML is shown as text."""
    return render_html(text)
