"""Every block of every page can be run or says why not; Python blocks compile."""

import ast
import re
import subprocess

import pytest

from controlplane.documentation.blocks import parse_page

from .pages import PAGES, read_page


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_no_invalid_block_or_marker(page: str) -> None:
    parse_page(read_page(page))


@pytest.mark.parametrize("page", PAGES)
def test_python_blocks_compile(page: str) -> None:
    flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    for block in parse_page(read_page(page)):
        if block.language == "python":
            compile("\n" * (block.line - 1) + block.text, page, "exec", flags)


@pytest.mark.parametrize("page", PAGES)
def test_nothing_is_installed_into_the_checkouts_environment(page: str) -> None:
    """It belongs to `make`, and other tests use it."""
    blocks = [block for block in parse_page(read_page(page)) if block.language == "sh"]

    assert [b.line for b in blocks if re.search(r"\.venv/bin/\S*( -m )?pip install", b.text)] == []


@pytest.mark.services
def test_commands_are_valid_shell() -> None:
    wrong = []
    for page in PAGES:
        scripts = [b for b in parse_page(read_page(page)) if b.language == "sh"]
        for block in scripts:
            text = "\n" * (block.line - 1) + block.text
            done = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True)
            wrong += [f"{page}: {done.stderr}"] if done.returncode else []

    assert wrong == []
