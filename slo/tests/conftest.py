"""Fixtures of all SLO tests."""

import pytest

from slo.thresholds import statuses


@pytest.fixture(autouse=True)
def _nothing_found_before() -> None:
    """Clear the cache of rule statuses, which a test must not inherit."""
    statuses.clear_cache()
