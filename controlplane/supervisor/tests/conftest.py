"""Data directories for the supervisor's tests."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane.supervisor import layout


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A directory that every user of the machine can enter, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp(prefix="switchgear test é "))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def data(open_folder: Path) -> Path:
    """A data directory as the supervisor makes one."""
    return layout.create_layout(open_folder / "data").data


@pytest.fixture
def closed_folder(tmp_path: Path) -> Iterator[Path]:
    """Below a directory that only root can enter, as in /root or mktemp -d."""
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o700)
    yield folder
    pointer = folder / "data" / "postgres-home"
    if pointer.exists():
        shutil.rmtree(pointer.read_text().strip())
