"""Fixtures of the tests of safety rules."""

import pytest

from controlplane.core.http.tests.callers import as_role


@pytest.fixture
def operator():
    return as_role("operator")
