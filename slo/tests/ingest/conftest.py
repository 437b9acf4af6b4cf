"""Fixtures of the ingest tests."""

import pytest

from slo.models import Sli

from .sample_helpers import objective


@pytest.fixture
def sli() -> Sli:
    """Create an SLO; return its counters."""
    return objective()
