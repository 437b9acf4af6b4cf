"""The list of a built site's files, with what their responses need; written by the build."""

import base64
import gzip
import hashlib
import json
import mimetypes
import re
from dataclasses import asdict, dataclass
from pathlib import Path

NAME = ".manifest.json"
POLICY = (
    "default-src 'none'; script-src 'self'{hashes}; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; worker-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
"""Content security policy of the pages, with the hashes of their inline scripts."""
MIN_GZIP_BYTES = 1024
_SCRIPT = re.compile(r"<script(?P<attributes>[^>]*)>(?P<text>.*?)</script>", re.DOTALL)
_COMPRESSIBLE = re.compile(r"text/|application/(javascript|json|xml)|image/svg")


@dataclass(frozen=True)
class SiteFile:
    """A file of the site: its media type and ETags; `gzip_etag` is "" without a gzip form."""

    media_type: str
    etag: str
    gzip_etag: str


@dataclass(frozen=True)
class SiteManifest:
    """The files of a site by their path, such as `operate/index.html`.

    `sources` identifies the sources that the site was built from.
    """

    sources: str
    policy: str
    files: dict[str, SiteFile]


def write_manifest(folder: Path, sources: str) -> None:
    """Write the manifest of the site in `folder`, and the gzip form of its larger text files."""
    files, scripts = {}, set()
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or path.name == NAME:
            continue
        content = path.read_bytes()
        if path.suffix == ".html":
            scripts |= hash_scripts(content.decode())
        files[path.relative_to(folder).as_posix()] = _describe(path, content)
    hashes = "".join(f" '{one}'" for one in sorted(scripts))
    manifest = SiteManifest(sources, POLICY.format(hashes=hashes), files)
    (folder / NAME).write_text(json.dumps(asdict(manifest)))


def read_manifest(folder: Path) -> SiteManifest | None:
    """Return the manifest of the site in `folder`, or None if no site was built there."""
    try:
        raw = json.loads((folder / NAME).read_bytes())
        files = {name: SiteFile(**values) for name, values in raw["files"].items()}
        return SiteManifest(raw["sources"], raw["policy"], files)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def hash_scripts(page: str) -> set[str]:
    """Return the hashes, for a content security policy, of a page's inline scripts."""
    texts = {
        match["text"]
        for match in _SCRIPT.finditer(page)
        if "src=" not in match["attributes"] and "application/json" not in match["attributes"]
    }
    digests = (hashlib.sha256(text.encode()).digest() for text in texts)
    return {f"sha256-{base64.b64encode(digest).decode()}" for digest in digests}


def _describe(path: Path, content: bytes) -> SiteFile:
    media_type = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    digest = hashlib.sha256(content).hexdigest()[:24]
    compressed = b""
    if len(content) >= MIN_GZIP_BYTES and _COMPRESSIBLE.match(media_type):
        compressed = gzip.compress(content, 6, mtime=0)
        path.with_name(f"{path.name}.gz").write_bytes(compressed)
    if media_type.startswith("text/") or media_type.endswith(("javascript", "json")):
        media_type += "; charset=utf-8"
    return SiteFile(media_type, f'"{digest}"', f'"{digest}-gzip"' if compressed else "")
