"""OpenAPI document as bytes, built once per release.

`collectstatic` writes it next to the static files, with a hash of the source code in its name, so
that a process never serves the document of another release. A process without that file builds the
document itself and responds with 503 meanwhile.
"""

import gzip
import hashlib
import threading
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import yaml
from django.conf import settings
from drf_spectacular.generators import SchemaGenerator

from controlplane.core.errors import Unavailable

BUILD_SECONDS = 2
"""Approximate build time; the value of Retry-After."""
GZIP_LEVEL = 9
FOLDERS = ("controlplane", "switches", "breakers", "slo")
JSON, YAML = "json", "yaml"
STEM = "openapi-"

_lock = threading.Lock()
_ready: dict[str, "Representation"] = {}


@dataclass(frozen=True)
class Representation:
    """The OpenAPI document in one format (JSON or YAML): plain and gzip bytes, with their ETags."""

    plain: bytes
    compressed: bytes
    etag: str
    compressed_etag: str


def get_representation(form: str) -> Representation:
    """Return the OpenAPI document in the format `json` or `yaml`.

    Raises :class:`Unavailable` while another thread builds it.
    """
    ready = _ready.get(form)
    if ready is not None:
        return ready
    if not _lock.acquire(blocking=False):
        raise Unavailable("The OpenAPI document is being generated.", retry_after=BUILD_SECONDS)
    try:
        return _ready.setdefault(form, _build_representation(form))
    finally:
        _lock.release()


def build() -> dict[str, Any]:
    """Return the OpenAPI document as JSON values; takes about two seconds of CPU."""
    generator = SchemaGenerator()  # type: ignore[no-untyped-call]
    document = generator.get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    plain: dict[str, Any] = orjson.loads(orjson.dumps(document, default=_convert_value))
    return plain


def load() -> dict[str, Any]:
    """Return the OpenAPI document as JSON values: the one that `write` stored, or a new one."""
    stored: dict[str, Any] = orjson.loads(_load_json())
    return stored


def write(folder: Path) -> None:
    """Write the OpenAPI document into `folder`, unless the file for this source code exists."""
    target = folder / f"{STEM}{hash_sources()}.{JSON}"
    if target.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_suffix(".unfinished")
    unfinished.write_bytes(orjson.dumps(build()))
    for old in folder.glob(f"{STEM}*.{JSON}"):
        old.unlink(missing_ok=True)
    unfinished.replace(target)


@cache
def hash_sources() -> str:
    """Return a hash of all that determines the OpenAPI document: source code and requirements."""
    base, digest = Path(settings.BASE_DIR), hashlib.sha256()
    sources = (file for name in FOLDERS for file in sorted((base / name).rglob("*.py")))
    for file in (*base.glob("requirements.txt"), *sources):
        if "tests" not in file.parts:
            digest.update(str(file.relative_to(base)).encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _build_representation(form: str) -> Representation:
    plain = _load_json()
    if form == YAML:
        text = yaml.dump(
            orjson.loads(plain), Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True
        )
        plain = text.encode()
    digest = hashlib.sha256(plain).hexdigest()[:24]
    compressed = gzip.compress(plain, GZIP_LEVEL, mtime=0)
    return Representation(plain, compressed, f'"{digest}"', f'"{digest}-gzip"')


@cache
def _load_json() -> bytes:
    file = Path(settings.STATIC_ROOT) / f"{STEM}{hash_sources()}.{JSON}"
    return file.read_bytes() if file.is_file() else orjson.dumps(build())


def _convert_value(value: object) -> object:
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return str(value)
