"""The strict build refuses broken links and pages that nothing lists."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from controlplane.documentation.hooks import ROOT

CONFIG = Path(__file__).resolve().parent.parent / "mkdocs.yml"
PAGE = "# Page\n\n[link]({})\n"

pytestmark = pytest.mark.lint


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        ("other.md#there", ""),
        ("missing.md", "'missing.md', but the target is not found"),
        ("../missing.yaml", "'../missing.yaml', but the target"),
        ("other.md#nowhere", "does not contain an anchor '#nowhere'"),
        ("#nowhere", "there is no such anchor on this page"),
    ],
)
def test_a_broken_link_fails_the_build(tmp_path: Path, target: str, problem: str) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "page.md").write_text(PAGE.format(target))
    (tmp_path / "docs" / "other.md").write_text("# Other\n\n## There\n")

    done = build(tmp_path, ["page.md", "other.md", "changelog.md"])

    assert (done.returncode == 0) == (not problem), done.stderr
    assert problem in done.stderr


@pytest.mark.parametrize(
    ("target", "output"),
    [
        ("page.md", ""),
        (
            "missing.md",
            "WARNING: Doc file 'page.md' contains a link 'missing.md', but the target is not found"
            " among documentation files.\nAborted with 1 warnings in strict mode!\n",
        ),
    ],
)
def test_a_strict_build_prints_only_problems_in_plain_text(
    tmp_path: Path, target: str, output: str
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "page.md").write_text(PAGE.format(target))
    write_config(tmp_path, ["page.md", "changelog.md"])

    done = run_python(
        "-c",
        "import sys; from pathlib import Path; from controlplane import logs;"
        "from controlplane.documentation import build; logs.configure_logging();"
        "build.CONFIG = Path(sys.argv[1]); sys.exit(build.main(['--strict', sys.argv[2]]))",
        str(tmp_path / "mkdocs.yml"),
        str(tmp_path / "site"),
    )

    assert done.stderr + done.stdout == output


def test_a_page_that_is_not_in_the_navigation_fails_the_build(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "page.md").write_text("# Page\n")

    done = build(tmp_path, ["changelog.md"])

    assert done.returncode == 1
    assert 'not included in the "nav" configuration:\n  - page.md' in done.stderr


@pytest.mark.parametrize(("variables", "is_linked"), [({}, True), ({"DOCS_PUBLISHED": "1"}, False)])
def test_only_a_site_served_by_a_console_links_to_it(
    tmp_path: Path, variables: dict[str, str], is_linked: bool
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "page.md").write_text("# Page\n")

    done = build(tmp_path, ["page.md", "changelog.md"], **variables)

    assert done.returncode == 0, done.stderr
    page = (tmp_path / "site" / "page" / "index.html").read_text()
    assert ('<a href="/">Open the console</a>' in page) == is_linked
    assert ('class="md-banner"' in page) == is_linked


def test_the_foot_of_a_page_names_the_versions_of_console_and_client(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "page.md").write_text("# Page\n")

    build(tmp_path, ["page.md", "changelog.md"])

    page = (tmp_path / "site" / "page" / "index.html").read_text()
    assert re.search(r"Console \d+\.\d+\.\d+ · Python client \d+\.\d+\.\d+", page)


def build(folder: Path, nav: list[str], **variables: str) -> subprocess.CompletedProcess[str]:
    """Build a site with these pages, by the real site's validation and hooks."""
    write_config(folder, nav)
    return run_python(
        "-m", "mkdocs", "build", "--strict", "-f", str(folder / "mkdocs.yml"), **variables
    )


def write_config(folder: Path, nav: list[str]) -> None:
    config = {
        "INHERIT": str(CONFIG),
        "docs_dir": str(folder / "docs"),
        "site_dir": str(folder / "site"),
        "hooks": [str(CONFIG.parent / "hooks.py")],
        "theme": {"custom_dir": str(CONFIG.parent / "theme")},
        "nav": nav,
        "plugins": [],
        "extra": {"api_reference": False},
    }
    (folder / "mkdocs.yml").write_text(yaml.safe_dump(config))


def run_python(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", **variables},
        capture_output=True,
        text=True,
        timeout=60,
    )
