"""Fixtures of the tests of jobs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.steps.jobs import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.store.close()
