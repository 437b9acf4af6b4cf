"""Hooks of MkDocs: pages from other folders, links that leave `docs/`, and runbooks' headings."""

import os
import tomllib
from fnmatch import fnmatch
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from controlplane.documentation import api_reference
from controlplane.documentation.code_words import mark_words
from controlplane.documentation.links import (
    Site,
    remove_console_links,
    remove_repository_links,
    rewrite_links,
)
from controlplane.documentation.navigation import expand_patterns

ROOT = Path(__file__).resolve().parent.parent.parent
INCLUDED = {
    "changelog.md": ROOT / "CHANGELOG.md",
    "images/icon.svg": ROOT / "static" / "favicon.svg",
}
"""Files outside `docs/` that the site has, by their place on it."""
SEARCH_BOOSTS = {
    **dict.fromkeys(
        ("operate.md", "recover.md", "breakers.md", "slo.md", "dead-letters.md", "integrate.md"),
        2.0,
    ),
    **dict.fromkeys(("adr/*", "reference/*", "changelog.md", "screen-facts.md"), 0.3),
    **dict.fromkeys(("architecture.md", "benchmarks.md", "comparison.md"), 0.3),
}
"""Factors of pages' search scores, by pattern, so that how-to guides come first; others have 1."""
IS_PUBLISHED = "DOCS_PUBLISHED" in os.environ
"""True for the public site, which has several versions and no console beside it."""

_generated: dict[str, str] = {}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    if config.extra.get("api_reference"):
        _generated.update(api_reference.build_pages())
    config.copyright = (
        f"Console {_read_version(ROOT)} · Python client {_read_version(ROOT / 'client')}"
    )
    if IS_PUBLISHED:
        config.repo_url = config.extra["repository"]
        config.extra["version"] = {"provider": "mike", "alias": True}
    else:
        config.extra["console_path"] = "/"
    docs = Path(config.docs_dir)
    pages = [path.relative_to(docs).as_posix() for path in docs.rglob("*.md")]
    config.nav = expand_patterns(config.nav or [], [*pages, *_generated])
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for uri, text in _generated.items():
        files.append(File.generated(config, uri, content=text))
    for uri, path in INCLUDED.items():
        files.append(File.generated(config, uri, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    page.meta["search"] = {"boost": find_search_boost(page.file.src_uri)}
    source = page.file.abs_src_path
    if source is None:
        return markdown
    uris = {Path(file.abs_src_path): file.src_uri for file in files if file.abs_src_path}
    site = Site(uris, ROOT, config.extra["repository"], (ROOT / "deploy" / "compose.yaml").exists())
    if IS_PUBLISHED:
        markdown = remove_console_links(markdown)
    return _runbook_heading(page) + rewrite_links(markdown, Path(source), page.file.src_uri, site)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    html = mark_words(html)
    return html if IS_PUBLISHED else remove_repository_links(html, config.extra["repository"])


def find_search_boost(uri: str) -> float:
    return next((boost for each, boost in SEARCH_BOOSTS.items() if fnmatch(uri, each)), 1.0)


def _read_version(folder: Path) -> str:
    text = (folder / "pyproject.toml").read_text(encoding="utf-8")
    version: str = tomllib.loads(text)["project"]["version"]
    return version


def _runbook_heading(page: Page) -> str:
    """Return the heading that the console makes of a runbook's front matter, or ""."""
    if "symptoms" not in page.meta:
        return ""
    symptoms = "\n".join(f"- {symptom}" for symptom in page.meta["symptoms"])
    return f"# {page.meta['title']}\n\n{page.meta['summary']}\n\n## Symptoms\n\n{symptoms}\n\n"
