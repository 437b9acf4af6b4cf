"""The commands of each page work, run in page order against a real installation."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane.documentation.blocks import Block, InvalidPage, parse_page
from controlplane.tests.installation import Installation

from .pages import PAGES, ROOT, read_page
from .shell_session import ShellSession

PAGE_SECONDS = 180
OUR_TESTS = re.compile(r"(controlplane|switches|breakers|slo)/(.+/)?tests/")
"""Most files of a checkout, which no page names."""
DEFAULT_ADDRESSES = ("127.0.0.1:8000", "localhost:8000")
"""Addresses in pages that stand for the running installation."""
NOT_FOR_READERS = {
    *("PORT", "SECRET_KEY", "SWITCHGEAR_ADMIN_PASSWORD", "DJANGO_SETTINGS_MODULE"),
    *("PYTHONPATH", "MAKEFLAGS", "MFLAGS", "MAKELEVEL"),
}
KEPT_OF_HOME = (".config/pip", ".npmrc", ".cache", ".npm")
"""Configuration and caches of package managers, which a page may use."""

pytestmark = [pytest.mark.docs, pytest.mark.timeout(PAGE_SECONDS + 150)]


def list_pages() -> Iterator[str]:
    """Yield the pages with commands. Each server of a page has a port of its own."""
    for page in PAGES:
        try:
            blocks = parse_page(read_page(page))
        except InvalidPage:  # Its test says what is wrong.
            yield page
            continue
        if any(block.language == "sh" and not block.not_run for block in blocks):
            yield page


@pytest.fixture(scope="session")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    installation = Installation(tmp_path_factory.mktemp("docs") / "data")
    installation.environment.pop("SECRET_KEY", None)
    try:
        installation.start()
        yield installation
    finally:
        installation.end()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a copy of the checkout that a page's commands may change."""
    folder = tmp_path / "switchgear"
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file() and not OUR_TESTS.match(name):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    (folder / ".venv").symlink_to((ROOT / ".venv").resolve())
    return folder


@pytest.fixture
def environment(installation: Installation, tmp_path: Path) -> dict[str, str]:
    """Return a reader's environment: of the installation, with an empty home directory."""
    home, present = tmp_path / "home", Path.home()
    for name in KEPT_OF_HOME:
        if (present / name).exists():
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).symlink_to(present / name)
    home.mkdir(exist_ok=True)
    kept = {k: v for k, v in installation.environment.items() if k not in NOT_FOR_READERS}
    path = f"{home}/.local/bin:{os.environ['PATH']}"
    # As on systems that let nobody install packages for all (PEP 668).
    pip = {"PIP_REQUIRE_VIRTUALENV": "1"}
    return {**kept, **pip, "HOME": str(home), "PATH": path, "TMPDIR": str(tmp_path)}


@pytest.mark.parametrize("page", list(list_pages()))
def test_the_commands_of_a_page_work(
    page: str,
    installation: Installation,
    checkout: Path,
    environment: dict[str, str],
    tmp_path: Path,
) -> None:
    text = read_page(page)
    for address in DEFAULT_ADDRESSES:
        text = text.replace(address, f"127.0.0.1:{installation.port}")

    with ShellSession(page, checkout, tmp_path / "blocks", environment, PAGE_SECONDS) as session:
        for block in parse_page(text):
            _use(session, block)


def _use(session: ShellSession, block: Block) -> None:
    if block.title:
        session.write(block)
    elif block.language == "sh" and not block.not_run:
        session.run(block)
