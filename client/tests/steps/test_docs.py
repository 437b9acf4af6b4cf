"""The example of the page about steps runs as it stands."""

import os
import re
import subprocess
import sys
from pathlib import Path

CLIENT = Path(__file__).resolve().parents[2]


def test_example_of_the_page_prints_its_output(tmp_path):
    page = (CLIENT.parent / "docs" / "patterns" / "steps.md").read_text()
    (block,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (promised,) = re.findall(r"^print\(.*\)  # (.*)$", block, re.MULTILINE)

    made = subprocess.run(
        [sys.executable, "-c", block],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(CLIENT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (made.returncode, made.stdout, made.stderr) == (0, f"{promised}\n", "")
