"""What every test of SLOs stands on."""

import pytest

from slo.thresholds import statuses


@pytest.fixture(autouse=True)
def _nothing_found_before() -> None:
    """What rules find is kept for some seconds, which a test must not inherit."""
    statuses.clear_cache()
