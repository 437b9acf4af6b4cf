"""Markdown: rendering to HTML that the strict content security policy allows, and escaping.

Raw HTML, images and script links are not rendered.
"""

import re
from collections.abc import Sequence
from typing import Any

from django.utils.safestring import SafeString
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

MAX_ESCAPED_LENGTH = 500
_MARKUP = re.compile(r"([\\`*_\[\]<>&|~])")
_MARKUP_AT_START = re.compile(r"^([-+#=]|\d+(?=[.)]))")


def render_html(markdown: str) -> SafeString:
    """Render Markdown with tables; raw HTML is shown as text."""
    options = {"html": False, "linkify": False, "typographer": False}
    parser = MarkdownIt("commonmark", options, renderer_cls=_Renderer)
    rendered: str = parser.enable("table").disable("image").render(markdown)
    return SafeString(rendered)  # The renderer has escaped everything.


class _Renderer(RendererHTML):
    def fence(self, *arguments: Any) -> str:
        # Code blocks must be focusable to be scrolled by keyboard.
        code = super().fence(*arguments)
        return code.replace("<pre>", '<pre tabindex="0" role="group" aria-label="Commands">', 1)

    def table_open(self, *_: Any) -> str:
        return '<div class="prose__table" tabindex="0" role="group" aria-label="Table"><table>'

    def table_close(self, *_: Any) -> str:
        return "</table></div>"

    def link_open(self, tokens: Sequence[Token], index: int, *arguments: Any) -> str:
        token = tokens[index]
        if "://" in str(token.attrGet("href") or ""):
            token.attrSet("rel", "noopener noreferrer")
        return self.renderToken(tokens, index, *arguments)


def escape_markdown(value: object) -> str:
    """Return the value's text on one line, escaped and cut to 500 characters."""
    text = " ".join("".join(one if one.isprintable() else " " for one in str(value)).split())
    if len(text) > MAX_ESCAPED_LENGTH:
        text = f"{text[: MAX_ESCAPED_LENGTH - 1]}…"
    return _MARKUP_AT_START.sub(_escape_at_start, _MARKUP.sub(r"\\\1", text))


def _escape_at_start(match: re.Match[str]) -> str:
    start = match[1]  # The sign of a list or heading, or the number of a list item.
    return f"{start}\\" if start.isdigit() else f"\\{start}"
