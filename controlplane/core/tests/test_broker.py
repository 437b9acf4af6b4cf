"""The broker's queues, read within a time limit."""

import os
import subprocess
import sys

from django.conf import settings

SLOW_START = """
import sys, time
import django

class SlowFinder:
    def find_spec(self, name, *_):
        if name == "breakers.tasks":
            time.sleep(1.5)

django.setup()
sys.meta_path.insert(0, SlowFinder())
from controlplane.core import broker
assert broker.queue_lengths()
"""


def test_slow_imports_of_a_young_process_are_no_outage_of_redis():
    environment = {**os.environ, "REDIS_URL": settings.REDIS_URL}

    program = subprocess.run(
        [sys.executable, "-c", SLOW_START],
        env=environment,
        cwd=settings.BASE_DIR,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert program.returncode == 0, program.stderr
