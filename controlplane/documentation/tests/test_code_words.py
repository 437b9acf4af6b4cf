"""Marks around words of code, so that lines end at spaces."""

import pytest

from controlplane.documentation.code_words import mark_words


@pytest.mark.parametrize(
    ("html", "marked"),
    [
        (
            "<pre><code>run --dry-run now\n</code></pre>",
            '<pre><code>run <span class="word">--dry-run</span> now\n</code></pre>',
        ),
        (
            '<pre><code><span class="nv">$URL</span>/api&quot;\n</code></pre>',
            '<pre><code><span class="nv"><span class="word">$URL</span></span>'
            '<span class="word">/api&quot;</span>\n</code></pre>',
        ),
        ("<pre><code>make demo\n</code></pre>", "<pre><code>make demo\n</code></pre>"),
        (f"<pre>{'long-' * 6}name</pre>", f"<pre>{'long-' * 6}name</pre>"),
        ("<p><code>make docs-test</code></p>", "<p><code>make docs-test</code></p>"),
    ],
)
def test_words_of_code_blocks_are_marked(html, marked):
    assert mark_words(html) == marked
