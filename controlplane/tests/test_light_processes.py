"""Worker, beat and watchdog load no library that only pages need."""

import os
import subprocess
import sys

from controlplane.environment import ROOT

LOADED = """
import sys
import controlplane.processes.celery_command, controlplane.celery
from controlplane.core import ticks
from controlplane.processes.management.commands import watchdog
ticks.list_ticks()
print(*sys.modules)
"""
FOR_PAGES = {
    *("networkx", "prompt_toolkit", "requests", "rest_framework.views", "fido2", "unittest"),
    "controlplane.core.admin",
    "controlplane.urls",
}


def test_processes_beside_the_web_load_nothing_of_pages(tmp_path):
    environment = {
        **os.environ,
        "SECRET_KEY": "k" * 60,
        "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none",
        "REDIS_URL": "redis://127.0.0.1:1/0",
        "SWITCHGEAR_DATA_DIR": str(tmp_path),
    }

    done = subprocess.run(
        [sys.executable, "-c", LOADED],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) & FOR_PAGES == set()
