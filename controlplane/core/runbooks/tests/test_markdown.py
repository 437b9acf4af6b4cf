"""Markdown becomes HTML that can't do anything."""

import pytest

from controlplane.core.runbooks import markdown


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "a <img src=x onerror=alert(1)> b",
        "<style>body{display:none}</style>",
        "<!-- hidden -->",
        "[x](javascript:alert(1))",
        "[x](JaVaScRiPt:alert(1))",
        "[x](data:text/html,<script>alert(1)</script>)",
        "![x](https://example.org/pixel.png)",
        '<https://example.org/?"onclick="alert(1)>',
        '[x](/a "t\\" onclick=\\"alert(1)")',
        '```"><script>alert(1)</script>\ncode\n```',
    ],
)
def test_nothing_of_it_runs_hides_or_loads(text):
    html = str(markdown.render_html(text)).lower()

    assert "<script" not in html
    assert "<img" not in html
    assert "<style" not in html
    assert "<!--" not in html
    assert 'href="javascript' not in html
    assert 'href="data' not in html
    assert ' onclick="' not in html


def test_headings_lists_tables_and_code_are_there():
    html = markdown.render_html(
        "## At once\n\n1. do\n\n| a | b |\n|---|---|\n| `c` | **d** |\n\n```\ne\n```\n"
    )

    for part in ("<h2>At once</h2>", "<ol>", "<table>", "<td><code>c</code></td>", "<pre tabindex"):
        assert part in html


def test_links_elsewhere_say_nothing_of_us_and_own_ones_are_plain():
    html = markdown.render_html("[a](https://example.org/) [b](/breakers/)")

    assert '<a href="https://example.org/" rel="noopener noreferrer">' in html
    assert '<a href="/breakers/">' in html
