"""Markdown to HTML that the strict content security policy allows.

Raw HTML, images and script links are not rendered.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.safestring import SafeString
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

LANGUAGE = "language-"


def html(markdown: str) -> SafeString:
    """Render Markdown with GitHub's tables; raw HTML is shown as text."""
    rendered: str = _markdown().render(markdown)
    return SafeString(rendered)  # The renderer has escaped everything.


class _Renderer(RendererHTML):
    def fence(
        self, tokens: Sequence[Token], index: int, options: Any, environment: Mapping[str, Any]
    ) -> str:
        """Make code blocks scrollable by keyboard."""
        code = super().fence(tokens, index, options, environment)  # type: ignore[arg-type]
        return code.replace("<pre>", '<pre tabindex="0" role="group" aria-label="Commands">', 1)

    def table_open(
        self, tokens: Sequence[Token], index: int, options: Any, environment: Mapping[str, Any]
    ) -> str:
        return '<div class="prose__table" tabindex="0" role="group" aria-label="Table"><table>'

    def table_close(
        self, tokens: Sequence[Token], index: int, options: Any, environment: Mapping[str, Any]
    ) -> str:
        return "</table></div>"

    def link_open(
        self, tokens: Sequence[Token], index: int, options: Any, environment: Mapping[str, Any]
    ) -> str:
        """Withhold the referrer from pages elsewhere."""
        token = tokens[index]
        if "://" in str(token.attrGet("href") or ""):
            token.attrSet("rel", "noopener noreferrer")
        return self.renderToken(tokens, index, options, environment)  # type: ignore[arg-type]


def _markdown() -> MarkdownIt:
    options = {"html": False, "linkify": False, "typographer": False}
    markdown = MarkdownIt("commonmark", options, renderer_cls=_Renderer)
    return markdown.enable("table").disable("image")
