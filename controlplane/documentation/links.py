"""Rewriting of relative links, which work on GitHub, to links that work on the site."""

import os.path
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_FENCE = re.compile(r"\s*+(`{3,}|~{3,})")
_CODE = re.compile(r"(`+[^`]*`+)")
_TARGET = re.compile(r'(?P<before>\]\(|^\s*\[[^\]]+\]:\s+|\s(?:src|href)=")(?P<target>[^)\s"]+)')
_CONSOLE_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(/[^)\s]*\)")
_NOT_RELATIVE = re.compile(r"[a-z][a-z0-9+.-]*:|[/#]", re.IGNORECASE)


@dataclass(frozen=True)
class Site:
    """The files of a site: `uris` by absolute path; `root` is the checkout's, for other files.

    Without `is_checkout`, files outside `docs/` may be missing, as in an image's build.
    """

    uris: Mapping[Path, str]
    root: Path
    repository: str
    is_checkout: bool = True


def rewrite_links(text: str, source: Path, uri: str, site: Site) -> str:
    """Return a page's Markdown with links that fit its place `uri` on the site.

    Links to files outside the site lead to the repository. Links to missing files are kept, and
    MkDocs reports them.
    """

    def replace(match: re.Match[str]) -> str:
        return match["before"] + _translate(match["target"], source, uri, site)

    lines, fence = [], ""
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence):
            fence = ""
        elif not fence:
            # Odd parts are code.
            parts = [
                part if number % 2 else _TARGET.sub(replace, part)
                for number, part in enumerate(_CODE.split(line))
            ]
            line = "".join(parts)
        lines.append(line)
    return "\n".join(lines)


def remove_console_links(text: str) -> str:
    """Return Markdown with links to pages of the console, such as `/alerts/`, as plain text."""
    return _CONSOLE_LINK.sub(r"\1", text)


def remove_repository_links(html: str, repository: str) -> str:
    """Return HTML with links to files of the repository as plain text."""
    link = rf'<a [^>]*href="{re.escape(repository)}/[^"]*"[^>]*>(.*?)</a>'
    return re.sub(link, r"\1", html, flags=re.DOTALL)


def _translate(target: str, source: Path, uri: str, site: Site) -> str:
    if _NOT_RELATIVE.match(target):
        return target
    name, hash_sign, anchor = target.partition("#")
    path = Path(os.path.normpath(source.parent / name))
    known = site.uris.get(path) or site.uris.get(path / "README.md")
    if known is not None:
        return posixpath.relpath(known, posixpath.dirname(uri) or ".") + hash_sign + anchor
    if not path.is_relative_to(site.root):
        return target
    may_be_missing = not (site.is_checkout or path.is_relative_to(site.root / "docs"))
    if path.exists() or may_be_missing:
        kind = "tree" if path.is_dir() else "blob"
        return f"{site.repository}/{kind}/main/{path.relative_to(site.root)}" + hash_sign + anchor
    return target
