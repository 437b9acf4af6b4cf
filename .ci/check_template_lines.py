"""Check that no line of a template is longer than 120 columns; `make lint` runs it.

Prints each longer line as `file:line: its length`, and exits with 1 if there is any.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAX_COLUMNS = 120


def main() -> int:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "*.html"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    too_long = [
        f"{name}:{number}: {len(line)} columns\n"
        for name in filter(None, listed.stdout.split("\0"))
        for number, line in enumerate((ROOT / name).read_text().splitlines(), 1)
        if len(line) > MAX_COLUMNS
    ]
    sys.stdout.writelines(too_long)
    return 1 if too_long else 0


if __name__ == "__main__":
    sys.exit(main())
