"""Finder and storage of static files, both the console's own and those of JavaScript libraries."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from django.contrib.staticfiles.finders import FileSystemFinder
from whitenoise.storage import CompressedManifestStaticFilesStorage

LIBRARIES = {"vendor/uplot": "uplot/dist"}
"""Folder of each library in its npm package, by the path it is served under."""
LEFT_OUT = (
    *("node_modules", "package.json", "package-lock.json", "tsconfig.json", "requirements.txt"),
    *("*.d.ts", "*.cjs.js", "*.esm.js", "*.iife.js"),
)

OUR_IMPORTS = ("js/*.js", ((r'(?P<matched>from "(?P<url>\./[^"]+)")', 'from "%(url)s"'),))
"""Glob of the console's JavaScript modules, with pattern and replacement for their imports."""


class Finder(FileSystemFinder):
    """A finder of static files that skips package files of libraries, such as `package.json`."""

    def list(self, ignore_patterns: Iterable[str] | None) -> Iterable[Any]:
        return super().list([*(ignore_patterns or ()), *LEFT_OUT])


class Storage(CompressedManifestStaticFilesStorage):  # type: ignore[misc]  # It has no types.
    """A storage that adds content hashes to file names, also in imports of JavaScript modules.

    With unhashed imports, browsers would use old modules of their caches after an upgrade.
    """

    patterns = (*CompressedManifestStaticFilesStorage.patterns, OUR_IMPORTS)


def list_folders(static: Path) -> list[Path | tuple[str, Path]]:
    """Return all folders with static files, except those of libraries that aren't installed."""
    installed = static / "node_modules"
    served = {name: installed / folder for name, folder in LIBRARIES.items()}
    return [static, *((name, folder) for name, folder in served.items() if folder.is_dir())]
