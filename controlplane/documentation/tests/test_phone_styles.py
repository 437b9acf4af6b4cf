"""The stylesheet of the documentation on a phone: code wraps, and identifiers in tables don't."""

from importlib.util import find_spec
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from controlplane.documentation import build
from controlplane.documentation.code_words import mark_words

pytestmark = pytest.mark.e2e

COMMAND = "kubectl set env deployment/core --env-file SWITCHGEAR_FORCE_ENGAGED=segment:finance"
PAGE = """<style>{theme}</style><style>{site}</style><article class="md-typeset">
<pre><code>{command}</code></pre>
<div class="md-typeset__scrollwrap"><div class="md-typeset__table"><table><tr>
<td>core</td><td>visitors of the first service</td><td><code>feature:nl2sql</code></td>
<td><code>core-availability</code></td></tr></table></div></div></article>"""


def test_phone_shows_whole_commands_and_unbroken_identifiers(chromium: Browser) -> None:
    spec = find_spec("material")
    assert spec is not None
    assert spec.origin is not None
    assets = Path(spec.origin).parent / "templates/assets/stylesheets"
    theme = "".join(path.read_text() for path in assets.glob("main.*.min.css"))
    site = (build.ROOT / "controlplane/documentation/theme/stylesheets/site.css").read_text()
    page = chromium.new_page(viewport={"width": 390, "height": 844})
    page.set_content(mark_words(PAGE.format(theme=theme, site=site, command=COMMAND)))

    hidden = page.eval_on_selector("pre > code", "code => code.scrollWidth - code.clientWidth")
    words = page.eval_on_selector_all(".word", "all => all.map(one => one.getClientRects().length)")
    lines = page.eval_on_selector_all(
        "td code", "codes => codes.map(c => c.getClientRects().length)"
    )
    beside = page.eval_on_selector(
        "pre > code", "code => parseFloat(getComputedStyle(code).paddingInlineEnd)"
    )
    hint = page.eval_on_selector(
        ".md-typeset__scrollwrap", "one => getComputedStyle(one).backgroundImage"
    )
    page.close()

    assert hidden <= 0
    assert words == [1, 1]
    assert lines == [1, 1]
    assert beside >= 32  # the copy button
    assert hint.count("gradient") == 4
