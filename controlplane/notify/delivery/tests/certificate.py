"""A self-signed certificate for hooks.example.org and localhost, generated for each run."""

import atexit
import functools
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

NAMES = "subjectAltName=DNS:hooks.example.org,DNS:localhost"


@functools.cache
def certificate() -> Path:
    """Return the path of a PEM file with the certificate and its key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("no openssl here to make a certificate with")
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    made, key = Path(folder) / "tls.pem", Path(folder) / "key.pem"
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    options = ["-days", "2", "-subj", "/CN=hooks.example.org", "-addext", NAMES]
    subprocess.run(
        [openssl, "req", "-x509", *curve, *options, "-keyout", str(key), "-out", str(made)],
        check=True,
        capture_output=True,
    )
    made.write_text(made.read_text() + key.read_text())
    return made
