"""Static files: our own files, and the library files that pages load."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from django.contrib.staticfiles.finders import FileSystemFinder
from whitenoise.storage import CompressedManifestStaticFilesStorage

LIBRARIES = {"vendor/uplot": "uplot/dist"}
"""Folder of each library in its npm package, by the path it is served under."""
LEFT_OUT = (
    *("node_modules", "package.json", "package-lock.json", "requirements.txt"),
    *("*.d.ts", "*.cjs.js", "*.esm.js", "*.iife.js"),
)

OUR_IMPORTS = ("js/*.js", ((r'(?P<matched>from "(?P<url>\./[^"]+)")', 'from "%(url)s"'),))
"""Files, pattern and replacement for imports; only our own modules are rewritten."""


class Finder(FileSystemFinder):
    """Finds the files to collect, without the libraries' packaging."""

    def list(self, ignore_patterns: Iterable[str] | None) -> Iterable[Any]:
        return super().list([*(ignore_patterns or ()), *LEFT_OUT])


class Storage(CompressedManifestStaticFilesStorage):  # type: ignore[misc]  # It has no types.
    """Names files by content hash and rewrites our modules' imports of each other.

    Otherwise, after an upgrade a browser would use the old version of an imported module.
    """

    patterns = (*CompressedManifestStaticFilesStorage.patterns, OUR_IMPORTS)


def list_folders(static: Path) -> list[Path | tuple[str, Path]]:
    """Return all folders with static files, except those of libraries that aren't installed."""
    installed = static / "node_modules"
    served = {name: installed / folder for name, folder in LIBRARIES.items()}
    return [static, *((name, folder) for name, folder in served.items() if folder.is_dir())]
