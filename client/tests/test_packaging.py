"""The wheel: all of the library, nothing else, and nothing needed beside it."""

import ast
import os
import resource
import subprocess
import sys
import tomllib
import zipfile
from email import message_from_string
from email.message import Message
from pathlib import Path

import pytest

import switchgear

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

LOADED = """
import contextlib, sys
with contextlib.suppress(SystemExit):
    {statement}
print(*sys.modules)
"""
HEAVY = {
    *("asyncio", "email", "http.client", "pathlib", "selectors", "socket", "sqlite3", "ssl"),
    *("subprocess", "tempfile", "urllib.request", "uuid"),
}
"""Standard modules that take long to import, or are only for some who use the library."""
MAX_MEASURED = 7


def run(*command: object, folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run in an environment without a console or other paths for modules."""
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


def run_checked(*command: object, folder: Path) -> str:
    ended = run(*command, folder=folder)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run_checked(
        sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, folder=CLIENT
    )
    [built] = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the programs of an environment that has the wheel, and only that."""
    folder = tmp_path_factory.mktemp("bare")
    run_checked(UV, "venv", "--offline", "--python", sys.executable, folder / "venv", folder=folder)
    programs = folder / "venv" / "bin"
    install = (UV, "pip", "install", "--offline", "--no-deps", "--python", programs / "python")
    run_checked(*install, wheel, folder=folder)
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


def metadata_of(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as opened:
        [place] = [name for name in opened.namelist() if name.endswith("dist-info/METADATA")]
        return message_from_string(opened.read(place).decode())


def test_wheel_asks_for_nothing_but_what_its_extras_are_for(wheel: Path) -> None:
    metadata = metadata_of(wheel)

    asked = {line.replace('"', "'") for line in metadata.get_all("Requires-Dist", [])}
    assert asked == {
        "cryptography>=41; extra == 'signed'",
        "redis>=5; extra == 'redis'",
        "rich>=13; extra == 'cli'",
        "websockets>=12; extra == 'cli'",
    }
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["Version"] == PROJECT["version"]


def test_wheel_names_its_license_its_addresses_and_what_it_is(wheel: Path) -> None:
    metadata = metadata_of(wheel)

    urls = dict(line.split(", ", 1) for line in metadata.get_all("Project-URL", []))
    kinds = {line.partition(" :: ")[0] for line in metadata.get_all("Classifier", [])}
    assert metadata["License-Expression"] == "Apache-2.0"
    assert {"Homepage", "Documentation", "Changelog", "Source", "Issues"} == urls.keys()
    assert all(url.startswith("https://") for url in urls.values())
    assert "circuit breaker" in metadata["Keywords"]
    assert kinds == {
        "Development Status",
        "Framework",
        "Intended Audience",
        "Operating System",
        "Programming Language",
        "Topic",
        "Typing",
    }


def loaded(statement: str, folder: Path) -> set[str]:
    """The modules of a fresh process after `statement`. Without `site`, which imports more."""
    code = LOADED.format(statement=statement)
    ended = run(sys.executable, "-S", "-c", code, folder=folder, PYTHONPATH=str(CLIENT))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return set(ended.stdout.splitlines()[-1].split())


@pytest.mark.parametrize(
    "statement",
    [
        "import switchgear",
        "from switchgear import Switchgear",
        "from switchgear import Breaker, Bulkhead, Deadline, Fallback, Policy, Retry, Timeout",
    ],
)
def test_import_loads_no_heavy_module(statement: str, tmp_path: Path) -> None:
    assert loaded(statement, tmp_path) & HEAVY == set()


@pytest.mark.parametrize(
    ("statement", "needless"),
    [
        (
            "import switchgear.dlq",
            {
                "asyncio",
                "cli",
                "client",
                "evaluation",
                "following",
                "guards",
                "lifecycle",
                "patterns",
            }
            | {"policies", "steps"},
        ),
        (
            "import switchgear.steps",
            {"asyncio", "cli", "client", "dlq", "following", "lifecycle", "policies"}
            | {f"patterns.{each}" for each in ("breaker", "bulkhead", "fallback", "retry")},
        ),
        (
            "import switchgear.cli.command_context; switchgear.cli.main(['status'])",
            {"asyncio", "client", "dlq", "guards", "lifecycle", "patterns", "policies", "steps"},
        ),
    ],
    ids=["dlq", "steps", "cli"],
)
def test_import_of_a_part_loads_nothing_of_the_others(
    statement: str, needless: set[str], tmp_path: Path
) -> None:
    found = loaded(statement, tmp_path)

    assert "switchgear" in found
    assert found & {name for each in needless for name in (each, f"switchgear.{each}")} == set()


def test_import_takes_about_as_much_time_as_that_of_asyncio(tmp_path: Path) -> None:
    def seconds(statement: str) -> float:
        """Return the CPU time that `statement` takes."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        ended = run(
            *(sys.executable, "-S", "-c", statement),
            folder=tmp_path,
            PYTHONPATH=str(CLIENT),
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert ended.returncode == 0, ended.stderr
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    statements = ("from switchgear import Switchgear", "import asyncio")
    for statement in statements:
        seconds(statement)  # Compiles it.
    ours = of_asyncio = float("inf")
    for _ in range(MAX_MEASURED):
        ours = min(ours, seconds(statements[0]))
        of_asyncio = min(of_asyncio, seconds(statements[1]))
        if ours < 1.2 * of_asyncio:  # It was 2.3 times as much when all was imported at once.
            return
    pytest.fail(f"{ours:.3f} s, and {of_asyncio:.3f} s for asyncio")


def test_public_names_are_those_that_type_checkers_see() -> None:
    tree = ast.parse((CLIENT / "switchgear" / "__init__.py").read_text())
    seen = {
        name.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("switchgear.")
        for name in node.names
    }

    found = {name: getattr(switchgear, name) for name in switchgear.__all__}
    assert found.keys() <= set(dir(switchgear))
    assert found.pop("from_env") == switchgear.Switchgear.from_env
    assert {name: value.__module__ for name, value in found.items()} == seen


def test_name_that_is_not_public_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Brake'"):
        _ = switchgear.Brake  # type: ignore[attr-defined]


def test_every_module_is_imported_without_any_other_package(bare: Path) -> None:
    said = run_checked(bare / "python", "-I", "-c", EVERY_MODULE, folder=bare.parent)

    assert said == f"[] {PROJECT['version']}\n"


def test_program_says_its_version(bare: Path) -> None:
    for command in ([bare / "switchgear"], [bare / "python", "-m", "switchgear"]):
        assert PROJECT["version"] in run_checked(*command, "--version", folder=bare.parent)


def test_program_without_its_extra_says_what_to_install(bare: Path) -> None:
    # Port 9 of this machine, where nobody listens: it must not come to asking.
    told = {"SWITCHGEAR_URL": "http://127.0.0.1:9", "SWITCHGEAR_TOKEN": "sg_a_b"}
    ended = run(bare / "switchgear", "status", folder=bare.parent, **told)

    assert ended.returncode == 2
    assert "switchgear[cli]" in ended.stderr
    assert "Traceback" not in ended.stderr


WITHOUT_EXTRA = """
import os, sys
import switchgear
key = "A" * 43 + "="
try:
    switchgear.Switchgear(None, public_key=key)
except ImportError as error:
    print(error)
os.environ["SWITCHGEAR_PUBLIC_KEY"] = key
with switchgear.from_env() as gear:
    print(gear.status().problems[0])
"""


def test_public_key_without_its_extra_says_what_to_install(bare: Path) -> None:
    said = run_checked(bare / "python", "-I", "-c", WITHOUT_EXTRA, folder=bare.parent)

    raised, problem = said.splitlines()
    assert "pip install 'switchgear[signed]'" in raised
    assert problem == f"SWITCHGEAR_PUBLIC_KEY can't be used: {raised}; no snapshot is accepted"


@pytest.mark.parametrize(("key", "is_loaded"), [("None", False), ("'A' * 43 + '='", True)])
def test_package_for_signatures_is_imported_with_a_public_key_alone(
    key: str, is_loaded: bool, tmp_path: Path
) -> None:
    client = f"Switchgear('http://127.0.0.1:9', 'sg_a_b', public_key={key}, state_dir=None)"
    code = f"import sys; from switchgear import Switchgear; {client}.close(0);"
    ended = run(
        *(sys.executable, "-c", f"{code} print('cryptography' in sys.modules)"),
        folder=tmp_path,
        PYTHONPATH=str(CLIENT),
    )

    assert ended.stdout == f"{is_loaded}\n", ended.stderr


def test_quickstart_runs_without_a_console(bare: Path) -> None:
    example = CLIENT / "examples" / "quickstart.py"

    assert run_checked(bare / "python", example, folder=bare.parent) == "Hello, Kim.\n"
