"""Templates of texts whose line breaks are shown, which must not add breaks of their own."""

import re
from pathlib import Path

import pytest
from django.conf import settings

FOLDER = Path(settings.BASE_DIR) / "templates"
SHOWS_BREAKS = re.compile(
    r"<[^<>]*\bclass=\"[^\"]*\b(?:user-text|event__why--short)\b[^\"]*\"[^<>]*>\s*\n"
)
"""The start tag of an element with `white-space: pre-line`, and a line break after it."""


@pytest.mark.parametrize("path", sorted(FOLDER.rglob("*.html")), ids=lambda path: path.name)
def test_text_with_visible_line_breaks_begins_on_the_line_of_its_tag(path):
    assert SHOWS_BREAKS.findall(path.read_text()) == []
