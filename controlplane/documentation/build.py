"""Builds the documentation site: `python -m controlplane.documentation.build [--strict] [FOLDER]`.

Without `--strict`, warnings don't fail the build, and a site of the same sources is kept.
"""

import argparse
import hashlib
import logging
import os
import re
import secrets
import shutil
import sys
from pathlib import Path

from controlplane.documentation import build_lock
from controlplane.documentation.manifest import read_manifest, write_manifest

ROOT = Path(__file__).resolve().parent.parent.parent
CONFIG = Path(__file__).resolve().parent / "mkdocs.yml"
SITE = ROOT / "var" / "docs"
"""Default folder of the built site."""
SOURCES = (
    *("docs", "client/switchgear", "CHANGELOG.md", "requirements.txt"),
    *("controlplane", "switches", "breakers", "slo", "static/favicon.svg", "pyproject.toml"),
    "client/pyproject.toml",
)
NICENESS = 10
"""Lower priority than the console's, which may be starting up at the same time."""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m controlplane.documentation.build")
    parser.add_argument("--strict", action="store_true", help="fail on warnings; always build")
    parser.add_argument("folder", nargs="?", type=Path, default=SITE)
    options = parser.parse_args(arguments)
    folder: Path = options.folder.absolute()
    sources = hash_sources(ROOT)
    # Before the lock, which a read-only folder refuses.
    if not options.strict and _is_built_from(folder, sources):
        return 0
    with build_lock.hold_lock(folder):
        if not options.strict and _is_built_from(folder, sources):  # By another build meanwhile.
            return 0
        os.nice(NICENESS)
        return build(folder, sources, is_strict=options.strict)


def build(folder: Path, sources: str, *, is_strict: bool) -> int:
    """Build the site in place of `folder`; return an exit code. The caller holds the lock."""
    os.environ.setdefault("NO_MKDOCS_2_WARNING", "1")
    try:
        from mkdocs.commands.build import build as build_site
        from mkdocs.config import load_config
        from mkdocs.exceptions import MkDocsException
    except ImportError:
        sys.stderr.write("MkDocs is not installed; see requirements.txt\n")
        return 1
    _remove_drafts(folder)
    draft = folder.with_name(f"{folder.name}.{secrets.token_hex(6)}")
    logging.getLogger("mkdocs").setLevel(logging.WARNING)
    if is_strict:  # For people: Django's setup, a hook of the build, would log JSON.
        plain = logging.StreamHandler()
        plain.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
        logging.getLogger("mkdocs").addHandler(plain)
        logging.getLogger("mkdocs").propagate = False
    try:
        build_site(load_config(str(CONFIG), site_dir=str(draft), strict=is_strict))
        write_manifest(draft, sources)
        _replace(folder, draft)
    except MkDocsException as error:
        sys.stderr.write(f"{error}\n")
        return 1
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return 0


def hash_sources(root: Path) -> str:
    """Return a hash of all files that the site is made from."""
    digest = hashlib.sha256()
    for name in SOURCES:
        path = root / name
        for file in [path] if path.is_file() else sorted(path.rglob("*")):
            if file.is_file() and not {"tests", "__pycache__"} & set(file.parts):
                digest.update(str(file.relative_to(root)).encode() + b"\0")
                digest.update(file.read_bytes())
    return digest.hexdigest()[:24]


def _is_built_from(folder: Path, sources: str) -> bool:
    manifest = read_manifest(folder)
    return manifest is not None and manifest.sources == sources


def _remove_drafts(folder: Path) -> None:
    """Remove what builds left that were stopped; the caller holds the lock, so none is in use."""
    for path in folder.parent.iterdir():
        if re.fullmatch(rf"{re.escape(folder.name)}\.[0-9a-f]{{12}}(\.old)?", path.name):
            shutil.rmtree(path, ignore_errors=True)


def _replace(folder: Path, draft: Path) -> None:
    old = draft.with_name(f"{draft.name}.old")
    if folder.exists():
        folder.rename(old)
    draft.rename(folder)
    shutil.rmtree(old, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
