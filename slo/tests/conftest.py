"""Fixtures of all SLO tests."""

import pytest

from slo.thresholds import statuses


@pytest.fixture(autouse=True)
def _empty_status_cache() -> None:
    """Clear the cache of rule statuses, so that no test inherits it."""
    statuses._cache.clear()
