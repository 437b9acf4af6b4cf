"""A disk that is full, read-only or failing, as the data plane reports it."""

import errno
from pathlib import Path

import pytest

from controlplane.dataplane.serving import landing_page, responses
from controlplane.dataplane.state import State
from controlplane.dataplane.sync import disk_watch


def test_a_disk_with_room_is_no_cause(tmp_path: Path) -> None:
    assert disk_watch.find_disk_problem(tmp_path / "not" / "there", None) is None


@pytest.mark.parametrize(
    ("number", "cause"),
    [
        (errno.ENOSPC, disk_watch.FULL),
        (errno.EDQUOT, disk_watch.FULL),
        (errno.EROFS, disk_watch.READ_ONLY),
        (errno.EIO, disk_watch.FAILING),
        (errno.EACCES, disk_watch.FORBIDDEN),
        (errno.EPERM, disk_watch.FORBIDDEN),
        (errno.ETIMEDOUT, None),
    ],
)
def test_a_save_that_failed_names_what_is_wrong_with_the_disk(
    tmp_path: Path, number: int, cause: object
) -> None:
    assert disk_watch.find_disk_problem(tmp_path, number) is cause


def test_a_full_disk_is_in_degradation_in_readiness_and_on_the_page() -> None:
    state = State()
    state.disk = disk_watch.FULL

    picture = responses.degradation_status(state)

    assert disk_watch.FULL.text in picture["causes"]
    assert "The disk of the data directory is full" in landing_page.render_page(state)[2].decode()
