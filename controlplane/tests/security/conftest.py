"""Pages without their frame, for tests of statuses alone."""

import copy
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.test import override_settings

BLOCK = re.compile(r"{% block \w+ %}")


@pytest.fixture(scope="session")
def _frameless_templates(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, object]]:
    """The template settings, with a `base.html` that has each block of the real one and no more."""
    (engine,) = copy.deepcopy(settings.TEMPLATES)
    base = (Path(engine["DIRS"][0]) / "base.html").read_text()
    folder = tmp_path_factory.mktemp("frameless")
    blocks = BLOCK.findall(base)
    assert "{% block main %}" in blocks
    (folder / "base.html").write_text("".join(f"{block}{{% endblock %}}" for block in blocks))
    return [{**engine, "DIRS": [folder, *engine["DIRS"]]}]


@pytest.fixture(scope="module")
def frameless(_frameless_templates: list[dict[str, object]]) -> Iterator[None]:
    """Render each page without navigation and banners, which take most of the time of a page.

    They are the same on every page and for every status; `test_headers.py` and `test_markup.py`
    ask for whole pages.
    """
    with override_settings(TEMPLATES=_frameless_templates):
        yield
