"""Write the software bill of materials of the image: `build_sbom.py [FILE]`.

The file, `dist/switchgear-console.cdx.json` by default, is CycloneDX 1.6 and lists what
`deploy/requirements.txt` pins, with licenses, and the JavaScript libraries that pages load. It is
the same for the same commit. Operating system packages of the base image are not in it.
"""

import base64
import json
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from image_packages import find_installed, read_pins

ROOT = Path(__file__).resolve().parents[2]
REQUIREMENTS = ROOT / "deploy" / "requirements.txt"
PACKAGE_LOCK = ROOT / "static" / "package-lock.json"
TIMEOUT_SECONDS = 300


def main(file: Path) -> int:
    document = describe_environment()
    add_libraries(document, json.loads(PACKAGE_LOCK.read_text())["packages"])
    text = json.dumps(document, indent=2, sort_keys=True) + "\n"
    if error := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
        sys.stderr.write(f"build_sbom: not valid CycloneDX 1.6: {error}\n")
        return 1
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    sys.stdout.write(f"{file}: {len(document['components'])} components\n")
    return 0


def describe_environment() -> dict[str, Any]:
    """Return what `cyclonedx-py` says of an environment with the pinned packages alone."""
    date = subprocess.run(
        ["git", "log", "-1", "--format=%ct"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.strip()
    with tempfile.TemporaryDirectory() as scratch:
        venv.create(scratch, with_pip=False)
        (site,) = Path(scratch).glob("lib/python*/site-packages")
        for folder in find_installed(read_pins(REQUIREMENTS.read_text())):
            (site / folder.name).symlink_to(folder)
        command = [
            *(sys.executable, "-m", "cyclonedx_py", "environment"),
            *("--pyproject", str(ROOT / "pyproject.toml"), "--output-reproducible"),
            "--no-validate",  # It takes ten seconds, and the whole document is validated later.
            *("--spec-version", "1.6", str(Path(scratch, "bin", "python"))),
        ]
        done = subprocess.run(
            command,
            env={**os.environ, "SOURCE_DATE_EPOCH": date},
            check=True,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
        )
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def add_libraries(document: dict[str, Any], packages: dict[str, dict[str, Any]]) -> None:
    """Add the npm packages that pages load, from the `packages` of a `package-lock.json`."""
    (root,) = (each for each in document["dependencies"] if each["ref"] == "root-component")
    for path, package in sorted(packages.items()):
        if not path or package.get("dev"):
            continue
        name = path.rpartition("node_modules/")[2]
        purl = f"pkg:npm/{name.replace('@', '%40')}@{package['version']}"
        algorithm, _, digest = package["integrity"].partition("-")
        if algorithm != "sha512":
            raise SystemExit(f"build_sbom: {name} has a hash by {algorithm}, not sha512")
        document["components"].append(
            {
                "bom-ref": purl,
                "type": "library",
                "name": name,
                "version": package["version"],
                "purl": purl,
                "licenses": [{"license": {"id": package["license"]}}],
                "hashes": [{"alg": "SHA-512", "content": base64.b64decode(digest).hex()}],
            }
        )
        document["dependencies"].append({"ref": purl})
        root["dependsOn"] = sorted([*root.get("dependsOn", []), purl])


if __name__ == "__main__":
    default = ROOT / "dist" / "switchgear-console.cdx.json"
    raise SystemExit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else default))
