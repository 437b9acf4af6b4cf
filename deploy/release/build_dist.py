"""Build the packages' wheels and sdists: `build_dist.py [FOLDER]`, by default into `dist/`.

All are built from the commit at HEAD, twice, and must be equal byte for byte. The wheels are then
installed into an empty environment, the client's with its extra `cli`, where commands must run.
"""

import filecmp
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = "client"
PACKAGES = (SOURCE, "client/ofrep_conformance")
TIMEOUT_SECONDS = 300


def main(folder: Path) -> int:
    commit, date = run("git", "log", "-1", "--format=%H %ct").split()
    with tempfile.TemporaryDirectory() as scratch:
        first, second = (build(Path(scratch, name), date) for name in ("first", "second"))
        differing = find_differences(first, second)
        if differing:
            sys.stderr.write(f"build_dist: two builds of {commit} differ: {differing}\n")
            return 1
        files = sorted(first.iterdir())
        (wheel,) = first.glob("switchgear-*.whl")
        (suite,) = first.glob("ofrep_conformance-*.whl")
        check_in_empty_environment(wheel, Path(scratch, "empty"))
        check_conformance_suite(suite, Path(scratch, "empty"))
        folder.mkdir(parents=True, exist_ok=True)
        for file in files:
            shutil.copy(file, folder)
    for file in files:
        sys.stdout.write(f"{folder / file.name}\n")
    sys.stdout.write(f"built from {commit}\n")
    return 0


def run(*command: str | Path, **variables: str) -> str:
    """Run a command in the repository and return its output; raise if it fails."""
    hidden = ("PYTHONPATH", "VIRTUAL_ENV", "SWITCHGEAR_URL", "SWITCHGEAR_TOKEN")
    kept = {name: value for name, value in os.environ.items() if name not in hidden}
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**kept, **variables},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
    )
    if done.returncode != 0:
        raise SystemExit(f"build_dist: {' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def build(scratch: Path, date: str) -> Path:
    """Export the commit at HEAD and return the folder with its sdists and the wheels of those."""
    scratch.mkdir()
    archive = scratch / "source.tar"
    run("git", "archive", f"--output={archive}", "HEAD", SOURCE)
    shutil.unpack_archive(archive, scratch, filter="data")
    built = scratch / "built"
    command = (sys.executable, "-m", "build", "--no-isolation", "--outdir", built)
    for package in PACKAGES:
        run(*command, scratch / package, SOURCE_DATE_EPOCH=date)
    return built


def find_differences(first: Path, second: Path) -> list[str]:
    """Return the names of files that only one folder has, or that differ in content."""
    names = sorted({file.name for folder in (first, second) for file in folder.iterdir()})
    _, differing, missing = filecmp.cmpfiles(first, second, names, shallow=False)
    return differing + missing


def check_in_empty_environment(wheel: Path, folder: Path) -> None:
    """Install `wheel` with its extra `cli` into an empty environment and run what it brings."""
    venv.create(folder, with_pip=False)
    programs = folder / "bin"
    python, command = programs / "python", programs / "switchgear"
    pip = (sys.executable, "-m", "pip", "--python", python)
    options = ("--quiet", "--disable-pip-version-check", "--no-compile")
    run(*pip, "install", *options, wheel)
    run(python, "-I", "-c", "import switchgear")
    installed = run(command, "--version")
    version = wheel.name.split("-")[1]
    if version not in installed:
        raise SystemExit(f"build_dist: {wheel.name} says that it is version {installed!r}")
    run(*pip, "install", *options, f"{wheel}[cli]")
    run(command, "--help")
    run(python, "-I", "-c", "import rich, websockets, switchgear.cli")


def check_conformance_suite(wheel: Path, folder: Path) -> None:
    """Install the OFREP conformance suite into the environment and list its checks."""
    python = folder / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", wheel)
    if "single.value" not in run(folder / "bin" / "ofrep-conformance", "--list"):
        raise SystemExit(f"build_dist: {wheel.name} lists no checks")


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "dist")))
