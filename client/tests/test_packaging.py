"""The wheel: all of the library, nothing else, and nothing needed beside it."""

import os
import subprocess
import sys
import tomllib
import zipfile
from email import message_from_string
from pathlib import Path

import pytest

CLIENT = Path(__file__).resolve().parents[1]
UV = Path(sys.executable).parent / "uv"
PROJECT = tomllib.loads((CLIENT / "pyproject.toml").read_text())["project"]
EVERY_MODULE = """
import importlib, pkgutil, sys
import switchgear
for found in pkgutil.walk_packages(switchgear.__path__, "switchgear."):
    # An adapter is for those who have the other library.
    others = ("switchgear.cli", "switchgear.__main__", "switchgear.adapters.")
    if not found.name.startswith(others):
        importlib.import_module(found.name)
strangers = {name.partition(".")[0] for name in sys.modules} - sys.stdlib_module_names
print(sorted(strangers - {"__main__", "switchgear"}), switchgear.__version__)
"""


def run(*command: object, folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """In an environment that knows of no console, and of no other place for modules."""
    hidden = ("SWITCHGEAR_", "PYTHON", "VIRTUAL_ENV", "UV_")
    env = {k: v for k, v in os.environ.items() if not k.startswith(hidden)}
    return subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env={**env, "XDG_STATE_HOME": str(folder / "state"), **more},
        capture_output=True,
        text=True,
        timeout=100,
    )


def done(*command: object, folder: Path) -> str:
    ended = run(*command, folder=folder)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    done(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, folder=CLIENT)
    [built] = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the programs of an environment that has the wheel, and only that."""
    folder = tmp_path_factory.mktemp("bare")
    done(UV, "venv", "--offline", "--python", sys.executable, folder / "venv", folder=folder)
    programs = folder / "venv" / "bin"
    install = (UV, "pip", "install", "--offline", "--no-deps", "--python", programs / "python")
    done(*install, wheel, folder=folder)
    return programs


def test_wheel_has_the_library_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        names = {name for name in opened.namelist() if ".dist-info/" not in name}

    ours = {
        str(path.relative_to(CLIENT))
        for path in (CLIENT / "switchgear").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert names == ours
    assert {"switchgear/py.typed", "switchgear/testing/__init__.py"} <= names


def test_wheel_asks_for_nothing_but_what_its_extras_are_for(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        [place] = [name for name in opened.namelist() if name.endswith("dist-info/METADATA")]
        metadata = message_from_string(opened.read(place).decode())

    asked = {line.replace('"', "'") for line in metadata.get_all("Requires-Dist", [])}
    assert asked == {
        "redis>=5; extra == 'redis'",
        "rich>=13; extra == 'cli'",
        "websockets>=12; extra == 'cli'",
    }
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["Version"] == PROJECT["version"]


def test_every_module_is_imported_without_any_other_package(bare: Path) -> None:
    said = done(bare / "python", "-I", "-c", EVERY_MODULE, folder=bare.parent)

    assert said == f"[] {PROJECT['version']}\n"


def test_program_says_its_version(bare: Path) -> None:
    for command in ([bare / "switchgear"], [bare / "python", "-m", "switchgear"]):
        assert PROJECT["version"] in done(*command, "--version", folder=bare.parent)


def test_program_without_its_extra_says_what_to_install(bare: Path) -> None:
    # Port 9 of this machine, where nobody listens: it must not come to asking.
    told = {"SWITCHGEAR_URL": "http://127.0.0.1:9", "SWITCHGEAR_TOKEN": "sg_a_b"}
    ended = run(bare / "switchgear", "status", folder=bare.parent, **told)

    assert ended.returncode == 2
    assert "switchgear[cli]" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_quickstart_runs_without_a_console(bare: Path) -> None:
    example = CLIENT / "examples" / "quickstart.py"

    assert done(bare / "python", example, folder=bare.parent) == "Hello, Kim.\n"
