"""The wheel: the whole package without its tests, usable without anything else."""

import subprocess
import sys
import zipfile
from pathlib import Path

from ofrep_conformance import __version__
from ofrep_conformance.runner import CHECKS

PACKAGE = Path(__file__).resolve().parents[1]


def test_wheel_has_every_module_and_runs_alone(tmp_path: Path) -> None:
    build = (sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path))
    subprocess.run(build, cwd=PACKAGE, check=True, capture_output=True, timeout=60)
    [wheel] = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as opened:
        names = {name for name in opened.namelist() if ".dist-info/" not in name}
        opened.extractall(tmp_path / "alone")

    sources = (path.relative_to(PACKAGE.parent) for path in PACKAGE.rglob("*.py"))
    modules = {str(path) for path in sources if "tests" not in path.parts}
    assert names == modules | {"ofrep_conformance/py.typed"}
    assert f"-{__version__}-" in wheel.name
    code = "import runpy, sys; sys.path.insert(0, sys.argv.pop(1)); "
    code += "runpy.run_module('ofrep_conformance', run_name='__main__')"
    alone = (sys.executable, "-I", "-S", "-c", code, str(tmp_path / "alone"), "--list")
    ran = subprocess.run(alone, check=True, capture_output=True, text=True, timeout=60)
    assert len(ran.stdout.splitlines()) == len(CHECKS)
