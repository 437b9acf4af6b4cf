"""The modules imported before the first answer of a start import no slow library."""

import subprocess
import sys

import pytest

from controlplane.environment import ROOT


@pytest.mark.parametrize(
    ("module", "slow"),
    [
        ("controlplane.supervisor.__main__", ("psycopg", "redis", "asyncio", "django")),
        ("controlplane.stand_in", ("redis", "granian.cli", "django")),
    ],
)
def test_start_imports_no_slow_library(module, slow):
    code = f"import {module}, sys; print(*sys.modules)"

    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={},
        capture_output=True,
        text=True,
        check=True,
    )

    assert set(done.stdout.split()) & set(slow) == set()
