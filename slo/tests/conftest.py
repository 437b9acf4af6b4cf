"""Fixtures of all SLO tests."""

import pytest

from controlplane.core.http.tests.callers import as_role
from slo.thresholds import statuses


@pytest.fixture(autouse=True)
def _empty_status_cache() -> None:
    """Clear the cache of rule statuses, so that no test inherits it."""
    statuses._cache.clear()


@pytest.fixture
def admin():
    return as_role("admin")


@pytest.fixture
def operator():
    return as_role("operator")
