"""The Python packages that the image installs, as `deploy/requirements.txt` pins them."""

import importlib.metadata
from pathlib import Path

from packaging.requirements import Requirement


def read_pins(text: str) -> list[Requirement]:
    """Return the requirements of a lock file, without their hashes."""
    lines = text.replace("\\\n", " ").splitlines()
    names = (line.partition(" --hash=")[0].strip() for line in lines)
    return [Requirement(name) for name in names if name and not name.startswith("#")]


def find_installed(pins: list[Requirement]) -> list[Path]:
    """Return the metadata folders of the pinned packages that are for this platform.

    Raises :class:`SystemExit` if one isn't installed in the pinned version.
    """
    wanted = [pin for pin in pins if pin.marker is None or pin.marker.evaluate()]
    folders = []
    for pin in wanted:
        try:
            found = importlib.metadata.distribution(pin.name)
        except importlib.metadata.PackageNotFoundError:
            raise SystemExit(f"{pin} is not installed") from None
        if not pin.specifier.contains(found.version):
            raise SystemExit(f"{pin} is pinned, {found.version} is installed")
        folders.append(Path(str(found.locate_file(""))) / _folder_name(found))
    return folders


def _folder_name(found: importlib.metadata.Distribution) -> str:
    names = {file.parts[0] for file in found.files or () if file.name == "METADATA"}
    (name,) = (name for name in names if name.endswith(".dist-info"))
    return name
