"""Check docstrings and names against the project's rules of language; `make lint` runs it.

Prints one line for each offence, as `file:line: what is wrong`, and exits with 1 if there is any.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OPENINGS = re.compile(r"(What|How|Whether|Who|Whom|Whose|Of|That|Where|When|Why|Which)\b")
"""Words that a docstring must not open with: it states what something is or does."""
LIMITS = re.compile(r"_?(MOST|LONGEST|LARGEST|LEAST|SHORTEST|SMALLEST|FEWEST)(_|$)")
TEST_FILES = re.compile(r"test_mended|_more$|_others$")
Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def main() -> int:
    offences = [offence for name in tracked_files() for offence in check_file(name)]
    sys.stdout.writelines(f"{offence}\n" for offence in offences)
    return 1 if offences else 0


def tracked_files() -> list[str]:
    """Return the paths of the Python files in git, without migrations."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "*.py"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    names = listed.stdout.split("\0")
    return [name for name in names if name and "/migrations/" not in name]


def check_file(name: str) -> Iterator[str]:
    stem = Path(name).stem
    if TEST_FILES.search(stem):
        yield f"{name}:1: {stem} tells history; name the behavior it tests"
    for node in ast.walk(ast.parse((ROOT / name).read_text())):
        if isinstance(node, Documented):
            text = ast.get_docstring(node) or ""
            if OPENINGS.match(text):
                line = node.body[0].lineno
                yield f"{name}:{line}: docstring opens with {text.split()[0]}; state what it is"
        elif isinstance(node, ast.Name) and LIMITS.match(node.id):
            yield f"{name}:{node.lineno}: name {node.id} MAX_… or MIN_…, with its unit"


if __name__ == "__main__":
    sys.exit(main())
