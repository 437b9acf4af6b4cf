"""Decorated functions keep their signatures, for mypy and for pyright, in our Pythons."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

CASES = Path(__file__).parent / "typing_cases"
CLIENT = CASES.parents[1]
TOOLS = Path(sys.executable).parent
VERSIONS = ("3.11", "3.13")
"""The oldest and the newest: what depends on a version differs between these two."""


Refused = set[tuple[str, int]]
"""Names of files, and lines in them."""


def mypy(version: str, folder: Path, cache: Path) -> Refused:
    settings = folder / "mypy.ini"
    settings.write_text(
        f"[mypy]\nmypy_path = {CLIENT}\nstrict = True\npython_version = {version}\n"
        f"cache_dir = {cache}\nshow_absolute_path = True\nshow_error_context = False\n"
    )
    done = subprocess.run(
        [TOOLS / "mypy", "--config-file", settings, "--no-error-summary", *CASES.glob("*.py")],
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    assert all(line.startswith(str(CASES)) for line in done.stdout.splitlines()), done.stdout
    found = re.findall(r"/(\w+\.py):(\d+): error:", done.stdout)
    return {(name, int(line)) for name, line in found}


def pyright(version: str, folder: Path, _cache: Path) -> Refused:
    settings = {
        "include": [str(CASES)],
        "extraPaths": [str(CLIENT)],
        "pythonVersion": version,
        "typeCheckingMode": "strict",
        # What a lambda finds in the arguments of a call is known to no checker.
        "reportUnknownLambdaType": False,
        "reportUnknownMemberType": False,
        "reportUnknownArgumentType": False,
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    done = subprocess.run(
        [
            TOOLS / "basedpyright",
            "--project",
            folder,
            "--pythonpath",
            sys.executable,
            "--outputjson",
        ],
        capture_output=True,
        text=True,
        timeout=100,
    )
    found = json.loads(done.stdout)
    assert found["summary"]["filesAnalyzed"] == 2, done.stderr
    return {
        (Path(one["file"]).name, one["range"]["start"]["line"] + 1)
        for one in found["generalDiagnostics"]
        if one["severity"] == "error"
    }


def marked() -> Refused:
    return {
        (case.name, number)
        for case in CASES.glob("*.py")
        for number, line in enumerate(case.read_text().splitlines(), 1)
        if line.endswith("# refused")
    }


@pytest.mark.lint
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("checker", [mypy, pyright])
def test_what_is_right_is_accepted_and_what_is_wrong_refused(checker, version, tmp_path, cache):
    assert len(marked()) == 37

    found = checker(version, tmp_path, cache.mkdir(f"mypy-{version}"))

    assert found == marked()
