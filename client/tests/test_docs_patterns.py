"""The code in the pages on patterns runs, and their links resolve."""

import ast
import importlib
import re
from pathlib import Path
from typing import TypedDict

import pytest

from switchgear import Switchgear

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs" / "patterns").glob("*.md"))
CLIENT_PAGES = [
    ROOT / "client" / "README.md",
    *(ROOT / "docs" / f"{name}.md" for name in ("client", "consumers", "testing")),
]
PATTERNS = (
    *("README", "adapters", "breaker", "budgets", "bulkhead", "fallback", "hedging"),
    *("kill-switch", "retry", "steps", "timeout"),
)


class State(TypedDict):
    said: str


def ask(question: str = "why?") -> str:
    return f"{question} because"


GIVEN = {
    "ask": ask,
    "ask_model": ask,
    "ask_small_model": ask,
    "State": State,
    "gear": Switchgear(None, service="core"),
    "history": "what was said before",
    "hints": "be short",
    "question": "why?",
}
"""What a reader has: no page shows it."""
BLOCKS = [
    pytest.param(block, id=f"{page.stem}-{n}")
    for page in PAGES
    if page.stem != "steps"  # Its pieces belong together.
    for n, block in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL))
]


def test_each_pattern_has_a_page_that_the_first_one_links_to() -> None:
    first = (ROOT / "docs" / "patterns" / "README.md").read_text()

    assert [page.stem for page in PAGES] == sorted(PATTERNS)
    assert all(f"({name}.md)" in first for name in PATTERNS[1:])


@pytest.mark.parametrize("page", [*PAGES, *CLIENT_PAGES], ids=str)
def test_what_a_page_imports_is_there(page: Path) -> None:
    blocks = re.findall(r"```python[^\n]*\n(.*?)```", page.read_text(), re.DOTALL)

    assert blocks
    for block in blocks:
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("switchgear"):
                module = importlib.import_module(node.module or "")
                assert [each.name for each in node.names if not hasattr(module, each.name)] == []


@pytest.mark.parametrize("block", BLOCKS)
def test_what_a_page_shows_runs(block: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SWITCHGEAR_URL", raising=False)

    exec(compile(block, "page", "exec"), {**GIVEN, "__name__": "page"})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_page_links_to_is_there(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)\)", page.read_text())

    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_each_page_names_its_pitfalls(page: Path) -> None:
    if page.stem != "README":
        assert re.search(r"^## Pitfalls?$", page.read_text(), re.MULTILINE)
